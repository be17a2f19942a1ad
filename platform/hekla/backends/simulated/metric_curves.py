"""The metrics that a simulated pod prints: curves from one value to another, described by a variable of its task.

`loss=2.4..0.4 accuracy=0.1..0.9 rate=0.01/0.001`: each metric, with its first and its best last value; and the value of
a parameter beside its best value. The further a parameter is from its best, the less a metric changes.
"""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

_NUMBER = r"[-+]?\d{1,9}(?:\.\d{1,9})?(?:e-?\d{1,2})?"
_CURVE = re.compile(rf"([A-Za-z_]\w{{0,40}})=({_NUMBER})\.\.({_NUMBER})", re.ASCII)
_PARAMETER = re.compile(rf"[A-Za-z_]\w{{0,40}}=({_NUMBER})/({_NUMBER})", re.ASCII)
_LONGEST, _MOST_WORDS, _STEPS, _STEP = 500, 20, 40, 25
_BEND, _NOISE = 4.0, 0.02


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """A metric: its name, its first value and its last."""

    name: str
    first: float
    last: float

    def at(self, part: float, noise: float) -> float:
        """The value after this part of the run; `noise`: from -1 to 1."""
        progress = (1 - math.exp(-_BEND * part)) / (1 - math.exp(-_BEND))
        return self.first + (self.last - self.first) * (progress + _NOISE * noise)


def parse_curves(text: str) -> Sequence[MetricCurve]:
    """The curves that this text describes. Raises ValueError."""
    if len(text) > _LONGEST:
        raise ValueError(text)
    words = text.split()
    curves = [match for word in words if (match := _CURVE.fullmatch(word))]
    parameters = [match for word in words if (match := _PARAMETER.fullmatch(word))]
    if len(curves) + len(parameters) != len(words) or len(words) > _MOST_WORDS:
        raise ValueError(text)
    gain = math.prod(_gain(float(value), float(best)) for value, best in (match.groups() for match in parameters))
    ends = [(name, float(first), float(last)) for name, first, last in (match.groups() for match in curves)]
    return [MetricCurve(name, first, first + (last - first) * gain) for name, first, last in ends]


def metric_lines(curves: Sequence[MetricCurve], seed: str) -> list[tuple[float, str]]:
    """The lines of a whole run, each with the part of the run after which it is printed."""
    if not curves:
        return []
    drawn, lines = random.Random(seed), []  # noqa: S311  (no secret)
    for number in range(1, _STEPS):
        part = number / _STEPS
        values = " ".join(f"{curve.name}={curve.at(part, drawn.uniform(-1, 1)):.5g}" for curve in curves)
        lines.append((part, f"::metric step={number * _STEP} {values}"))
    return lines


def _gain(value: float, best: float) -> float:
    """1 at the best value, a half at ten times or a tenth of it. Raises ValueError."""
    if value <= 0 or best <= 0:
        raise ValueError(value)
    return 1 / (1 + math.log10(value / best) ** 2)
