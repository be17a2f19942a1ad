"""Metrics that a job prints: lines like `::metric step=100 loss=0.23` in the logs of its pods."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hekla.apps.job_metrics import selectors
from hekla.apps.job_metrics.models import MetricLog
from hekla.apps.job_metrics.services import LogPart, instants, series_of
from hekla.apps.jobs.models import Pod
from hekla.domain.metric_lines import collect
from hekla.domain.metric_series import MetricPoint, MetricSeries, curve
from hekla.lib import clock
from hekla.live.logs import read_bytes

_MOST_BYTES = 1024 * 1024
_MOST_UNKNOWN = 8
"""Pods whose logs nobody reads in the background, and that are read for a page."""


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one metric of one pod: the last, and the points of its curve."""

    pod: str
    name: str
    last: float
    points: Sequence[MetricPoint]


def of_pods(pods: Sequence[Pod]) -> list[Series]:
    """All metrics of these pods.

    Most of each log is stored already. The next MiB is read now, so a page is never behind its job.
    """
    logs = selectors.logs_of([pod.pk for pod in pods])
    unknown = [pod for pod in pods if pod.pk not in logs][:_MOST_UNKNOWN]
    read = {**logs, **{pod.pk: MetricLog(pod=pod, job_id=pod.job_id, due_at=clock.now()) for pod in unknown}}
    return [series for pod in pods if pod.pk in read for series in _of_pod(pod, read[pod.pk])]


def _of_pod(pod: Pod, log: MetricLog) -> Iterator[Series]:
    found = series_of(log)
    if not log.is_complete:
        log.pod = pod  # with its job, which is read already
        chunk = read_bytes(pod, offset=log.offset, limit=_MOST_BYTES)
        part = LogPart(chunk.data, chunk.next_offset, is_last=chunk.complete, times=chunk.times)
        collect(found, chunk.data, instants(log, part, clock.now()))
    return (_series(str(pod), name, one) for name, one in found.items())


def _series(pod: str, name: str, one: MetricSeries) -> Series:
    points = curve(one.points())
    return Series(pod, name, points[-1].value, points)
