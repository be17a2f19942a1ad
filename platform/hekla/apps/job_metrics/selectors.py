"""Queries for the metrics of jobs. A job's metrics may be seen by those who may see the job."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, Func, JSONField, Min, OuterRef, Q, QuerySet, Value

from hekla.apps import due_work
from hekla.apps.event_log.models import Numbering
from hekla.apps.job_metrics.models import EventMetrics, MetricCursor, MetricLog
from hekla.apps.jobs.models import Pod

MAX_REPLICAS = 4
"""The number of replicas of each task whose logs are read."""
Figures = Mapping[str, float]
"""Of one metric: `last`, `min`, `max`, their steps (`last_step` and so on), and `count`."""


def figures_of(jobs: Collection[int] | QuerySet[Any]) -> dict[int, dict[str, Figures]]:
    """The figures of each metric of these jobs (primary keys), by its name.

    Of several pods that print a metric, the first replica counts, and of its attempts the last that has printed it.
    What a job prints counts before what it writes into event files.
    """
    found: dict[int, dict[str, Figures]] = defaultdict(dict)
    for rows in _sources():
        with_metrics = rows.filter(job__in=jobs).exclude(summary={})
        for job_id, summary in with_metrics.values_list("job_id", "summary"):
            for name, figures in summary.items():
                found[job_id].setdefault(name, figures)
    return found


def points_of(jobs: Collection[int], metric: str) -> dict[int, Mapping[str, Any]]:
    """The points of this metric's curve, for each of these jobs (primary keys) that has printed it."""
    found: dict[int, Mapping[str, Any]] = {}
    # A `KeyTransform` takes a name like "0", which a tag may be, for a place in a list.
    points = Func(F("points"), Value(metric), function="jsonb_extract_path", output_field=JSONField())
    for rows in _sources():
        with_metric = rows.filter(job__in=jobs, summary__has_key=metric)
        for job_id, stored in with_metric.values_list("job_id", points):
            found.setdefault(job_id, stored)
    return found


def logs_of(pods: Collection[int]) -> dict[int, MetricLog]:
    """What is stored for these pods (primary keys)."""
    return {log.pod_id: log for log in MetricLog.objects.filter(pod__in=pods)}


def unread() -> Q:
    """Whether a job (`OuterRef("job")`) has a log or event files that are not read to their end."""
    unknown = unlisted_pods().filter(job=OuterRef("job"), started_at__isnull=False)
    incomplete = [rows.objects.filter(job=OuterRef("job"), is_complete=False) for rows in (MetricLog, EventMetrics)]
    return Q(Exists(incomplete[0])) | Q(Exists(incomplete[1])) | Q(Exists(unknown))


def unlisted_pods() -> QuerySet[Pod]:
    """Pods whose logs are to be read, and that the reader does not know yet."""
    return Pod.objects.filter(~Exists(MetricLog.objects.filter(pod=OuterRef("pk"))), index__lt=MAX_REPLICAS)


def next_due() -> datetime | None:
    """When the next part of a log or an event file is read; None if all are read to their end."""
    unread_rows = (rows.objects.filter(is_complete=False) for rows in (MetricLog, EventMetrics))
    found = [rows.aggregate(at=Min("due_at"))["at"] for rows in unread_rows]
    return min((at for at in found if at is not None), default=None)


def read_work() -> list[QuerySet[Any, Any]]:
    """Logs and event files that are read soon, and a row if the reader has to follow the log (see `due_work`)."""
    position = MetricCursor.objects.filter(number__gte=OuterRef("last"))
    due = {"is_complete": False, "due_at__lte": due_work.horizon()}
    unread_rows = [rows.objects.filter(**due) for rows in (MetricLog, EventMetrics)]
    return [*unread_rows, Numbering.objects.filter(~Exists(position))]


def _sources() -> tuple[QuerySet[MetricLog], QuerySet[EventMetrics]]:
    """The rows with metrics, those that count first before the others."""
    order = ("job_id", "pod__slot", "-pod__attempt")
    return MetricLog.objects.order_by(*order), EventMetrics.objects.order_by(*order)
