"""Metrics that jobs have printed, as rows."""

from collections.abc import Mapping, Sequence

from hekla.apps.job_metrics.models import MetricLog
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.metric_series import MetricSeries
from hekla.lib import clock


def print_metrics(job: Job, values: Mapping[str, Sequence[float]]) -> MetricLog:
    """A pod of the job has printed these values, one per step and each a second after the last."""
    now, series = clock.now(), dict[str, MetricSeries]()
    for name, numbers in values.items():
        series[name] = MetricSeries()
        for step, value in enumerate(numbers):
            series[name].add(step, value, float(step))
    facts = {"task": "printer", "index": 0, "attempt": 1, "version": 1, "slot": job.pk, "address": ""}
    pod = Pod.objects.create(job=job, created_at=now, started_at=now, **facts)
    summary = {name: one.summary() for name, one in series.items()}
    points = {name: one.points() for name, one in series.items()}
    return MetricLog.objects.create(pod=pod, job=job, summary=summary, points=points, due_at=now, is_complete=True)
