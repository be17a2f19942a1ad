"""Metrics that programs print: lines like `::metric step=100 loss=0.23` in the logs of pods.

Logs are hostile: the length of names and their number are limited, and numbers that are not finite are left out.
"""

import math
import re
from collections.abc import Callable, Iterator

from hekla.domain.metric_series import MetricSeries

MAX_NAMES = 50
"""Further metrics of the same log are ignored."""
_LINE = re.compile(rb"^::metric((?:[ \t]+[A-Za-z_][\w.-]{0,40}=[-+0-9.eE]{1,32})+)[ \t\r]*$", re.MULTILINE)
_PAIR = re.compile(r"([A-Za-z_][\w.-]*)=([-+0-9.eE]+)", re.ASCII)
Instants = Callable[[int], float | None]
"""When the byte at this place was printed, in seconds since the pod started; None if that is unknown."""


def metric_lines(data: bytes) -> Iterator[tuple[int, float | None, dict[str, float]]]:
    """The place, the step (None if the line names none) and the metrics of each line, in order."""
    for match in _LINE.finditer(data):
        numbers = _numbers(match[1].decode("ascii"))
        step = numbers.pop("step", None)
        if numbers:
            yield match.start(), step, numbers


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


def collect(series: dict[str, MetricSeries], data: bytes, instant: Instants = lambda _place: None) -> bool:
    """Add the metrics of these lines to the series, by name. Returns whether there were any."""
    found = False
    for place, step, numbers in metric_lines(data):
        seconds = instant(place)
        for name, value in numbers.items():
            if name in series or len(series) < MAX_NAMES:
                series.setdefault(name, MetricSeries()).add(step, value, seconds)
                found = True
    return found
