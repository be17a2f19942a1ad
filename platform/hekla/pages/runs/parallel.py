"""Parallel coordinates of runs, drawn on the server: an axis for each differing parameter, and one for the metric.

Each job is a line across the axes, coloured by the rank of its metric. The picture needs no script, and the table
beside it holds the same figures.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from markupsafe import escape

from hekla.apps.job_metrics.ranking import Ranking, Run, best_run, describe
from hekla.lib.text import show_bidi_controls, truncate

MOST_AXES = 8
MOST_LINES = 300
LEVELS = 5
HEIGHT = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 72, 34, 238
_WIDTH, _LEAST_STEP = 420, 120
"""The distance from the first axis to the last, and the least distance of two."""
_MOST_TICKS, _TICK_SPACE = 8, 13
_MOST_LABEL = 14
_LOG_RATIO = 100
Tick = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Axis:
    """A vertical axis at `x`, with its labels at their heights."""

    name: str
    x: int
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True)
class RunLine:
    """A job. `points`: as SVG writes them; `level`: 0 for the best fifth of the jobs to 4 for the worst."""

    points: str
    level: int
    title: str
    is_best: bool


@dataclass(frozen=True, slots=True)
class Parallel:
    """The picture. `lines`: the best last, above the others; `total`: the jobs with the metric."""

    axes: Sequence[Axis]
    lines: Sequence[RunLine]
    width: int
    total: int
    height: int = HEIGHT
    top: int = _TOP
    bottom: int = _BOTTOM

    @property
    def drawn(self) -> SafeString:
        """The lines as SVG."""
        return SafeString("".join(map(_polyline, self.lines)))


def _polyline(line: RunLine) -> str:
    best = " parallel-best" if line.is_best else ""
    title = f"<title>{escape(line.title)}</title>"
    return f'<polyline class="level-{line.level}{best}" points="{line.points}">{title}</polyline>'


def parallel(runs: Sequence[Run], names: Sequence[str], order: Ranking) -> Parallel | None:
    """The picture of the best 300 runs; None if fewer than two have the metric, or no parameter differs."""
    ranked = sorted((run for run in runs if order.metric in run.metrics), key=order.key)
    drawn, varying = ranked[:MOST_LINES], names[: MOST_AXES - 1]
    best = best_run(ranked, order)
    if len(drawn) < 2 or not varying:  # noqa: PLR2004
        return None
    columns = [[run.parameters.get(name, "") for run in drawn] for name in varying]
    columns.append([f"{run.value(order.metric, order.value)!r}" for run in drawn])
    scales = [_scale(column) for column in columns]
    step = max(_LEAST_STEP, _WIDTH // (len(scales) - 1))
    xs = [_LEFT + step * place for place in range(len(scales))]
    labels = [truncate(show_bidi_controls(name), _MOST_LABEL + 2) for name in (*varying, order.metric)]
    axes = [Axis(label, x, ticks) for label, x, (_, ticks) in zip(labels, xs, scales, strict=True)]
    lines = [
        RunLine(
            " ".join(f"{x},{heights[place]:g}" for x, (heights, _) in zip(xs, scales, strict=True)),
            place * LEVELS // len(drawn),
            _title(run, names, order),
            run is best,
        )
        for place, run in enumerate(drawn)
    ]
    return Parallel(axes, lines[::-1], xs[-1] + _RIGHT, len(ranked))


def _title(run: Run, names: Sequence[str], order: Ranking) -> str:
    value = f"{order.metric} {run.value(order.metric, order.value):.4g}"
    return show_bidi_controls(truncate(f"{run.job.name}: {describe(run, names)} {value}", 200))


def _scale(column: Sequence[str]) -> tuple[list[float], list[Tick]]:
    """The height of each value, and the labels of the axis: a scale of numbers if all are, else the words in order."""
    numbers = [number_of(value) for value in column]
    if any(number is None for number in numbers):
        words = list(dict.fromkeys(column))
        places = {word: place for place, word in enumerate(words)}
        return _placed([float(places[value]) for value in column], {float(places[word]): word for word in words})
    found = [number for number in numbers if number is not None]
    text = {number: f"{number:.4g}" for number in sorted(set(found))}
    return _placed(found, text)


def number_of(value: str) -> float | None:
    """The finite number that this text is; None if it is another text."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def spans_magnitudes(values: Sequence[float]) -> bool:
    """Whether they are positive and span two orders of magnitude, so that a scale has their logarithms."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _LOG_RATIO


def _placed(values: Sequence[float], text: dict[float, str]) -> tuple[list[float], list[Tick]]:
    low, high, is_log = min(values), max(values), spans_magnitudes(values)

    def height(value: float) -> float:
        low_, high_, at = (math.log(low), math.log(high), math.log(value)) if is_log else (low, high, value)
        share = (at - low_) / (high_ - low_) if high_ > low_ else 0.5
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    return [height(value) for value in values], _ticks(sorted(text), text, height)


def _ticks(values: Sequence[float], text: dict[float, str], height: Callable[[float], float]) -> list[Tick]:
    """Labels of all values if they are few, else of the ends; those that would cover another are left out."""
    chosen = values if len(values) <= _MOST_TICKS else [values[0], values[-1]]
    ticks: list[Tick] = []
    for value in [chosen[0], chosen[-1], *chosen[1:-1]] if len(chosen) > 1 else chosen:
        at = height(value)
        if all(abs(at - other) >= _TICK_SPACE for other, _ in ticks):
            ticks.append((at, truncate(show_bidi_controls(text[value]), _MOST_LABEL)))
    return ticks
