"""Measures from the sums of GPU time and of jobs, over whole hours: the window is rounded up to them.

They are as fresh as the sums, so up to some minutes late; all others read what is so now.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, F, QuerySet, Sum
from django.db.models.functions import Cast
from django.utils.translation import gettext_lazy as _

from hekla.apps.alerts.measures.registry import AlertMeasure, AlertScope, AlertSubject, MeasuredValues, SubjectKind
from hekla.apps.measures.levels import HOUR, MINUTE, floor
from hekla.apps.measures.models import JobSum, PartGpuTime
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.gpu_time import GPU_HOUR, GpuClass
from hekla.domain.job_measures import MomentKind, quantile

WASTED = (GpuClass.IDLE, GpuClass.GANG, GpuClass.PREEMPTED, GpuClass.RETRIED, GpuClass.FAILED)
_LEVEL = HOUR // MINUTE


def _since(scope: AlertScope) -> datetime:
    return floor(scope.now - scope.window, HOUR)


def _sums(scope: AlertScope, by: str, classes: Iterable[GpuClass]) -> dict[int, dict[GpuClass, int]]:
    """GPU time in the window by the id of a queue or tenant."""
    rows = PartGpuTime.objects.filter(
        level=_LEVEL, cluster_id__in=scope.cluster_ids, by=by, at__gte=_since(scope), at__lt=scope.now
    )
    sums = {f"of_{one}": Sum(one.value) for one in classes}
    found: Iterable[dict[str, Any]] = rows.order_by().values("key").annotate(**sums)  # type: ignore[assignment]
    return {int(row["key"]): {one: int(row[f"of_{one}"] or 0) for one in classes} for row in found}


def _queues(scope: AlertScope) -> list[Queue]:
    return [scope.queue] if scope.queue else list(queues.all_queues().filter(cluster__in=scope.cluster_ids))


def _of_queue(queue: Queue) -> AlertSubject:
    return AlertSubject(SubjectKind.QUEUE, str(queue.pk), queue.name, queue.cluster_id)


def _gpu_use(scope: AlertScope) -> MeasuredValues:
    """Of the time whose use was measured. Queues without such time have no value."""
    known = (GpuClass.USEFUL, GpuClass.IDLE)
    found, values = _sums(scope, "queue", known), dict[AlertSubject, float]()
    for queue in _queues(scope):
        times = found.get(queue.pk, {})
        if whole := sum(times.values()):
            values[_of_queue(queue)] = 100 * times[GpuClass.USEFUL] / whole
    return MeasuredValues(values)


def _hours(times: dict[int, dict[GpuClass, int]], key: int) -> float:
    return sum(times.get(key, {}).values()) / GPU_HOUR


def _wasted_of_queues(scope: AlertScope) -> MeasuredValues:
    found = _sums(scope, "queue", WASTED)
    return MeasuredValues({_of_queue(queue): _hours(found, queue.pk) for queue in _queues(scope)})


def _wasted_of_tenants(scope: AlertScope) -> MeasuredValues:
    found = _sums(scope, "tenant", WASTED)
    tenants = [scope.tenant] if scope.tenant else tenancy.all_tenants().filter(is_active=True)
    return MeasuredValues(
        {AlertSubject(SubjectKind.TENANT, str(one.pk), one.name): _hours(found, one.pk) for one in tenants}
    )


def _started(scope: AlertScope) -> QuerySet[JobSum]:
    facts = {"level": _LEVEL, "cluster_id__in": scope.cluster_ids, "what": MomentKind.STARTED.value}
    found = JobSum.objects.filter(**facts, at__gte=_since(scope), at__lt=scope.now).order_by()
    return found.filter(queue_id=scope.queue.pk) if scope.queue else found


def _waiting_p90(scope: AlertScope) -> MeasuredValues:
    """Of the jobs that started. Queues in which none has started have no value."""
    buckets: dict[int, Counter[int]] = defaultdict(Counter)
    counted = _started(scope).values("queue_id", bucket=Cast(F("part"), BigIntegerField())).annotate(n=Sum("count"))
    for row in counted:
        buckets[row["queue_id"]][row["bucket"]] += row["n"]
    values = {
        _of_queue(queue): (quantile(buckets[queue.pk], 0.9) or 0.0) / 60
        for queue in _queues(scope)
        if queue.pk in buckets
    }
    return MeasuredValues(values)


MEASURES = (
    AlertMeasure(
        "gpu_use",
        _("GPU time in use in the window, as a part of what pods held, by queue"),
        "%",
        SubjectKind.QUEUE,
        _gpu_use,
        changes_by_time=True,
        has_window=True,
        takes_queue=True,
    ),
    AlertMeasure(
        "wasted_gpu_hours_of_queue",
        _("GPU hours in the window that were idle or lost, by queue"),
        _("GPU h"),
        SubjectKind.QUEUE,
        _wasted_of_queues,
        changes_by_time=True,
        has_window=True,
        takes_queue=True,
    ),
    AlertMeasure(
        "wasted_gpu_hours_of_tenant",
        _("GPU hours in the window that were idle or lost, by tenant"),
        _("GPU h"),
        SubjectKind.TENANT,
        _wasted_of_tenants,
        changes_by_time=True,
        for_tenants=True,
        has_window=True,
    ),
    AlertMeasure(
        "waiting_p90",
        _("Waiting time that 90 of 100 jobs that started in the window did not exceed, by queue"),
        _("min"),
        SubjectKind.QUEUE,
        _waiting_p90,
        changes_by_time=True,
        has_window=True,
        takes_queue=True,
    ),
)
