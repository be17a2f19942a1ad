"""Metrics that a job prints: lines like `::metric step=100 loss=0.23` in the logs of its pods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hekla.apps.jobs.models import Pod
from hekla.domain.metric_lines import metric_lines
from hekla.live.logs import read_bytes

_MOST_BYTES = 1024 * 1024
_MOST_POINTS = 2000


@dataclass
class Series:
    """The values of one metric of one pod, by step."""

    pod: str
    name: str
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def of_pods(pods: Iterable[Pod]) -> list[Series]:
    """All metrics in the first MiB of each pod's log, at most about 2000 points each."""
    found: dict[tuple[str, str], Series] = {}
    for pod in pods:
        text = read_bytes(pod, offset=0, limit=_MOST_BYTES).data.decode(errors="replace")
        for step, numbers in metric_lines(text):
            _take(found, str(pod), step, numbers)
    return [_thinned(series) for series in found.values()]


def _take(found: dict[tuple[str, str], Series], pod: str, step: float | None, numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        series = found.setdefault((pod, name), Series(pod, name))
        series.steps.append(step if step is not None else float(len(series.steps)))
        series.values.append(value)


def _thinned(series: Series) -> Series:
    every = -(-len(series.values) // _MOST_POINTS) or 1
    if every == 1:
        return series
    last = len(series.values) - 1
    places = [place for place in range(len(series.values)) if place % every == 0 or place == last]
    return Series(series.pod, series.name, [series.steps[p] for p in places], [series.values[p] for p in places])
