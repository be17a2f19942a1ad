"""The values of one metric, in bounded space: figures of all of them, and a curve with every peak.

A curve is divided into at most 126 stretches of the same number of values. Of each stretch, the lowest and the highest
value are stored, so a curve never loses a peak. When a series grows beyond them, two neighbours become one. So the
result depends only on the values, never on the parts in which a log was read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

MAX_POINTS = 256
"""The most points of a curve."""
_MOST_STRETCHES = MAX_POINTS // 2 - 2
"""With two points each, and the first and the last value of the series; an even number."""


class MetricPoint(NamedTuple):
    """A value. `seconds`: since the pod started; None if unknown."""

    step: float
    value: float
    seconds: float | None


_Stretch = tuple[MetricPoint, MetricPoint]


@dataclass(slots=True)
class MetricSeries:
    """All values so far. `every`: the number of values in a stretch; `stretches`: the extremes of each, by step."""

    count: int = 0
    every: int = 2
    first: MetricPoint | None = None
    last: MetricPoint | None = None
    lowest: MetricPoint | None = None
    highest: MetricPoint | None = None
    stretches: list[_Stretch] = field(default_factory=list)

    def add(self, step: float | None, value: float, seconds: float | None = None) -> None:
        """Append a value. Without a step, its number counts, from 0."""
        point = MetricPoint(float(self.count) if step is None else step, value, seconds)
        if self.count // self.every == _MOST_STRETCHES:
            pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
            self.stretches = [_extremes([*one, *other]) for one, other in pairs]
            self.every *= 2
        if self.count // self.every == len(self.stretches):
            self.stretches.append((point, point))
        else:
            self.stretches[-1] = _extremes([*self.stretches[-1], point])
        self.count += 1
        self.first, self.last = self.first or point, point
        if self.lowest is None or value < self.lowest.value:
            self.lowest = point
        if self.highest is None or value > self.highest.value:
            self.highest = point

    def summary(self) -> dict[str, float]:
        """Its figures as JSON-like data, without the points. Empty before the first value."""
        if self.first is None or self.last is None or self.lowest is None or self.highest is None:
            return {}
        named = {"last": self.last, "min": self.lowest, "max": self.highest}
        figures = {name: point.value for name, point in named.items()}
        return {**figures, "count": self.count, **{f"{name}_step": point.step for name, point in named.items()}}

    def points(self) -> dict[str, Any]:
        """The rest of it, as JSON-like data."""
        stored = [*(point for stretch in self.stretches for point in stretch), self.first, self.last]
        steps, values, seconds = zip(*(point for point in stored if point), strict=True) if self.first else ((), (), ())
        return {"steps": list(steps), "values": list(values), "seconds": list(seconds), "every": self.every}

    @classmethod
    def restored(cls, summary: Mapping[str, float], points: Mapping[str, Any]) -> "MetricSeries":
        """The series that `summary` and `points` described."""
        *stored, first, last = _stored(points)
        found = cls(int(summary["count"]), points["every"], first, last)
        found.lowest = MetricPoint(summary["min_step"], summary["min"], None)
        found.highest = MetricPoint(summary["max_step"], summary["max"], None)
        found.stretches = list(zip(stored[::2], stored[1::2], strict=True))
        return found


def curve(points: Mapping[str, Any]) -> list[MetricPoint]:
    """The points to draw, in the order in which they were printed: the first, the last, and every peak between."""
    *stored, first, last = _stored(points)
    found = [first]
    for point in (*stored, last):
        if point != found[-1]:
            found.append(point)
    return found


_point: Callable[[Iterable[Any]], MetricPoint] = partial(tuple.__new__, MetricPoint)
"""Makes a point of its parts. A plot of fifty curves makes ten thousand, and `MetricPoint` itself takes longer."""


def _stored(points: Mapping[str, Any]) -> list[MetricPoint]:
    return list(map(_point, zip(points["steps"], points["values"], points["seconds"], strict=True)))


def _extremes(points: Sequence[MetricPoint]) -> _Stretch:
    """The lowest and the highest of these points, in their order."""
    low = min(range(len(points)), key=lambda place: points[place].value)
    high = max(range(len(points)), key=lambda place: points[place].value)
    return points[min(low, high)], points[max(low, high)]
