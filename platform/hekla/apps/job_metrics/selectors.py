"""Queries for the metrics of jobs. A job's metrics may be seen by those who may see the job."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import BooleanField, Exists, F, Func, Min, OuterRef, Q, QuerySet, TextField

from hekla.apps import due_work
from hekla.apps.compiled import CompiledValues, OneOf, Parameter
from hekla.apps.event_log.models import Numbering
from hekla.apps.job_metrics.models import EventMetrics, MetricCursor, MetricLog
from hekla.apps.jobs.models import Job, Pod

MAX_REPLICAS = 4
"""The number of replicas of each task whose logs are read."""
Figures = Mapping[str, float]
"""Of one metric: `last`, `min`, `max`, their steps (`last_step` and so on), and `count`."""


def figures_of(jobs: Collection[int]) -> dict[int, dict[str, Figures]]:
    """The figures of each metric of these jobs (primary keys), by its name.

    Of several pods that print a metric, the first replica counts, and of its attempts the last that has printed it.
    What a job prints counts before what it writes into event files.
    """
    found: dict[int, dict[str, Figures]] = defaultdict(dict)
    for rows in _FIGURES:
        for job_id, summary in rows.rows(jobs=list(jobs)):
            for name, figures in summary.items():
                found[job_id].setdefault(name, figures)
    return found


def points_of(jobs: Collection[int], metric: str) -> dict[int, str]:
    """The points of this metric's curve as JSON, for each of these jobs (primary keys) that has printed it."""
    found: dict[int, str] = {}
    for rows in _POINTS:
        for job_id, stored in rows.rows(jobs=list(jobs), metric=metric):
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


def _in_order(model: type[MetricLog] | type[EventMetrics]) -> QuerySet[Any]:
    """The rows of these jobs, those that count first before the others."""
    chosen = model._default_manager.filter(OneOf("job", "jobs", Job._meta.pk))
    return chosen.order_by("job_id", "pod__slot", "-pod__attempt")


def _figures(model: type[MetricLog] | type[EventMetrics]) -> QuerySet[Any, Any]:
    return _in_order(model).exclude(summary={}).values_list("job_id", "summary")


def _points(model: type[MetricLog] | type[EventMetrics]) -> QuerySet[Any, Any]:
    """Functions read them: a `KeyTransform` takes a name like "0", which a tag may be, for a place in a list."""
    metric = Parameter("metric", TextField())
    has = Func(F("summary"), metric, function="jsonb_exists", output_field=BooleanField())
    points = Func(F("points"), metric, function="jsonb_extract_path_text", output_field=TextField())
    return _in_order(model).filter(has).values_list("job_id", points)


_SOURCES = (MetricLog, EventMetrics)
"""What a job prints counts before what it writes into event files."""
_FIGURES = [CompiledValues(partial(_figures, model)) for model in _SOURCES]
_POINTS = [CompiledValues(partial(_points, model)) for model in _SOURCES]


def reader_position() -> int | None:
    """The number of the last event of the log that the reader of metrics has followed; None if none yet."""
    return MetricCursor.objects.values_list("number", flat=True).first()
