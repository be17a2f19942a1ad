"""Metrics that programs print: lines like `::metric step=100 loss=0.23` in the logs of pods.

Logs are hostile text: the length of names, their number and the number of stored points are limited, and numbers that
are not finite are left out.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_NAMES = 50
"""Further metrics of the same log are ignored."""
MAX_POINTS = 400
"""A series with more points is thinned to every second, every fourth, and so on."""
_LINE = re.compile(r"^::metric((?:[ \t]+[A-Za-z_][\w.-]{0,40}=[-+0-9.eE]{1,32})+)[ \t\r]*$", re.MULTILINE | re.ASCII)
_PAIR = re.compile(r"([A-Za-z_][\w.-]*)=([-+0-9.eE]+)", re.ASCII)


def metric_lines(text: str) -> Iterator[tuple[float | None, dict[str, float]]]:
    """The step (None if the line names none) and the metrics of each line, in order."""
    for match in _LINE.finditer(text):
        numbers = _numbers(match[1])
        step = numbers.pop("step", None)
        if numbers:
            yield step, numbers


def _numbers(text: str) -> dict[str, float]:
    pairs = {}
    for name, number in _PAIR.findall(text):
        try:
            value = float(number)
        except ValueError:
            continue
        if math.isfinite(value):
            pairs[name] = value
    return pairs


@dataclass(slots=True)
class MetricSeries:
    """The values of one metric of one log: the last, lowest and highest, their number, and at most 400 of them by step.

    `every`: a point is stored for each of so many values.
    """

    last: float = 0.0
    lowest: float = math.inf
    highest: float = -math.inf
    count: int = 0
    last_step: float = 0.0
    every: int = 1
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: float | None, value: float) -> None:
        """Append a value. Without a step, its number counts, from 0."""
        step = float(self.count) if step is None else step
        if self.count % self.every == 0:
            self.steps.append(step)
            self.values.append(value)
        self.count += 1
        self.last, self.last_step = value, step
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)
        if len(self.values) > MAX_POINTS:
            self.steps, self.values = self.steps[::2], self.values[::2]
            self.every *= 2

    def summary(self) -> dict[str, float]:
        """Its figures without the points, as JSON-like data."""
        return {"last": self.last, "min": self.lowest, "max": self.highest, "count": self.count}

    def points(self) -> dict[str, Any]:
        """The rest of it, as JSON-like data."""
        return {"steps": self.steps, "values": self.values, "every": self.every, "last_step": self.last_step}

    @classmethod
    def restored(cls, summary: Mapping[str, float], points: Mapping[str, Any]) -> "MetricSeries":
        """The series that `summary` and `points` described."""
        return cls(
            last=summary["last"],
            lowest=summary["min"],
            highest=summary["max"],
            count=int(summary["count"]),
            last_step=points["last_step"],
            every=points["every"],
            steps=list(points["steps"]),
            values=list(points["values"]),
        )


def curve(summary: Mapping[str, float], points: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """The steps and values to draw, always with the last value."""
    steps, values = list(points["steps"]), list(points["values"])
    if steps and (int(summary["count"]) - 1) % int(points["every"]):
        steps.append(points["last_step"])
        values.append(summary["last"])
    return steps, values


def collect(series: dict[str, MetricSeries], text: str) -> bool:
    """Add the metrics of these lines to the series, by name. Returns whether there were any."""
    found = False
    for step, numbers in metric_lines(text):
        for name, value in numbers.items():
            if name in series or len(series) < MAX_NAMES:
                series.setdefault(name, MetricSeries()).add(step, value)
                found = True
    return found
