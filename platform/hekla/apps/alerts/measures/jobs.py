"""Measures of jobs, queues and tenants."""

from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Count, Min, QuerySet
from django.utils.translation import gettext_lazy as _

from hekla.apps.alerts.measures.registry import (
    AlertMeasure,
    AlertScope,
    AlertSubject,
    MeasuredValues,
    SubjectKind,
    ValueSeries,
)
from hekla.apps.jobs.models import Job
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import selectors as quotas
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources

_MOST_JOBS = 500
"""Running jobs that are read, the longest first."""
_MOST_FAILURES = 50_000


def _of_queue(queue: Queue) -> AlertSubject:
    return AlertSubject(SubjectKind.QUEUE, str(queue.pk), queue.name, queue.cluster_id)


def _queues(scope: AlertScope) -> list[Queue]:
    """The queues in the scope; of a tenant, those that its members may submit to."""
    if scope.queue:
        return [scope.queue]
    found = queues.open_to(scope.tenant) if scope.tenant else queues.all_queues()
    return list(found.filter(cluster__in=scope.cluster_ids))


def _jobs(scope: AlertScope) -> QuerySet[Job]:
    """The jobs in the scope, without deleted ones."""
    found = Job.objects.filter(cluster__in=scope.cluster_ids, deleted_at=None).order_by()
    if scope.queue:
        found = found.filter(queue=scope.queue)
    return found.filter(tenant=scope.tenant) if scope.tenant else found


def _by_queue(scope: AlertScope, amounts: Mapping[int, float]) -> MeasuredValues:
    """The value of each queue in the scope, by row id; 0 if it has none."""
    return MeasuredValues({_of_queue(queue): amounts.get(queue.pk, 0.0) for queue in _queues(scope)})


def _waiting(scope: AlertScope) -> MeasuredValues:
    pending = _jobs(scope).filter(phase=JobPhase.PENDING)
    return _by_queue(scope, {pk: float(n) for pk, n in pending.values_list("queue").annotate(n=Count("pk"))})


def _oldest_waiting(scope: AlertScope) -> MeasuredValues:
    pending = _jobs(scope).filter(phase=JobPhase.PENDING)
    oldest = pending.values_list("queue").annotate(oldest=Min("submitted_at"))
    return _by_queue(scope, {pk: (scope.now - at).total_seconds() / 60 for pk, at in oldest})


def _failed(scope: AlertScope) -> QuerySet[Job]:
    return _jobs(scope).filter(phase=JobPhase.FAILED, finished_at__gte=scope.now - scope.window)


def _failed_by_queue(scope: AlertScope) -> MeasuredValues:
    found = _failed(scope).values_list("queue").annotate(n=Count("pk"))
    return _by_queue(scope, {pk: float(n) for pk, n in found})


def _failed_by_tenant(scope: AlertScope) -> MeasuredValues:
    counts = dict(_failed(scope).values_list("tenant").annotate(n=Count("pk")))
    tenants = [scope.tenant] if scope.tenant else tenancy.all_tenants().filter(is_active=True)
    return MeasuredValues(
        {AlertSubject(SubjectKind.TENANT, str(one.pk), one.name): float(counts.get(one.pk, 0)) for one in tenants}
    )


def _past_of_tenants(scope: AlertScope, since: datetime) -> Mapping[AlertSubject, ValueSeries]:
    found = _past_failures(scope, since, "tenant")
    names = dict(tenancy.all_tenants().filter(pk__in=found).values_list("pk", "name"))
    return {AlertSubject(SubjectKind.TENANT, str(pk), names.get(pk, "")): course for pk, course in found.items()}


def _past_of_queues(scope: AlertScope, since: datetime) -> Mapping[AlertSubject, ValueSeries]:
    found, known = _past_failures(scope, since, "queue"), {queue.pk: queue for queue in _queues(scope)}
    return {_of_queue(known[pk]): course for pk, course in found.items() if pk in known}


def _past_failures(scope: AlertScope, since: datetime, by: str) -> dict[int, ValueSeries]:
    """The number of failures in the window after each failure, and after each that leaves the window."""
    failed = _jobs(scope).filter(phase=JobPhase.FAILED, finished_at__gte=since)
    times: dict[int, list[datetime]] = defaultdict(list)
    for pk, at in failed.order_by("finished_at").values_list(by, "finished_at")[:_MOST_FAILURES]:
        times[pk].append(at)
    return {pk: _counted(of_one, scope.window, scope.now) for pk, of_one in times.items()}


def _counted(times: list[datetime], window: timedelta, now: datetime) -> ValueSeries:
    """How many of these instants were in the window that ends then, at each change of that number."""
    steps = sorted([*((at, 1) for at in times), *((at + window, -1) for at in times if at + window <= now)])
    count, course = 0, deque[tuple[datetime, float]]()
    for at, step in steps:
        count += step
        if course and course[-1][0] == at:
            course.pop()
        course.append((at, float(count)))
    return list(course)


def _run_hours(scope: AlertScope) -> MeasuredValues:
    running = _jobs(scope).filter(phase=JobPhase.RUNNING, started_at__isnull=False).order_by("started_at")
    found = running.values_list("uid", "name", "cluster_id", "started_at")[:_MOST_JOBS]
    return MeasuredValues(
        {
            AlertSubject(SubjectKind.JOB, str(uid), name, cluster): (scope.now - at).total_seconds() / 3600
            for uid, name, cluster, at in found
            if at is not None
        }
    )


def _over_guarantee(scope: AlertScope) -> MeasuredValues:
    """Of the resource of which the queue holds the largest part of its guarantee. Queues without one have no value."""
    limits = {queue: Resources.parse(queue.guarantee) for queue in _queues(scope) if queue.guarantee}
    held: dict[int, Resources] = defaultdict(Resources)
    for one in scope.held(scope.cluster_ids) if limits else ():
        held[one.job.queue_id] += one.request * len(one.nodes)
    values = {_of_queue(queue): _share(held[queue.pk], limit) for queue, limit in limits.items()}
    return MeasuredValues(values)


def _quota_used(scope: AlertScope) -> MeasuredValues:
    """Of the resource of which the tenant holds the largest part of its quota, in the cluster where it is highest."""
    tenants = [scope.tenant] if scope.tenant else list(tenancy.all_tenants().filter(is_active=True))
    limits = quotas.of_tenants([tenant.pk for tenant in tenants])
    held: dict[tuple[int, int], Resources] = defaultdict(Resources)
    for one in scope.held(scope.cluster_ids) if limits else ():
        held[one.job.tenant_id, one.job.cluster_id] += (one.request + {"pods": 1}) * len(one.nodes)
    values: dict[AlertSubject, float] = {}
    for tenant in tenants:
        if amounts := limits.get(tenant.pk):
            limit = Resources.parse(amounts)
            shares = [_share(held[tenant.pk, cluster], limit) for cluster in scope.cluster_ids]
            values[AlertSubject(SubjectKind.TENANT, str(tenant.pk), tenant.name)] = max(shares, default=0.0)
    return MeasuredValues(values)


def _share(held: Resources, limit: Resources) -> float:
    """The largest part of a limit that is held, in per cent."""
    return max((100 * held.amount(name) / amount for name, amount in limit.items() if amount > 0), default=0.0)


MEASURES = (
    AlertMeasure(
        "jobs_waiting",
        _("Pending jobs, by queue"),
        _("jobs"),
        SubjectKind.QUEUE,
        _waiting,
        for_tenants=True,
        takes_queue=True,
    ),
    AlertMeasure(
        "oldest_waiting",
        _("Age of the oldest pending job, by queue"),
        _("min"),
        SubjectKind.QUEUE,
        _oldest_waiting,
        changes_by_time=True,
        for_tenants=True,
        takes_queue=True,
    ),
    AlertMeasure(
        "failed_jobs_of_queue",
        _("Failed jobs in the window, by queue"),
        _("jobs"),
        SubjectKind.QUEUE,
        _failed_by_queue,
        changes_by_time=True,
        for_tenants=True,
        has_window=True,
        takes_queue=True,
        past=_past_of_queues,
    ),
    AlertMeasure(
        "failed_jobs_of_tenant",
        _("Failed jobs in the window, by tenant"),
        _("jobs"),
        SubjectKind.TENANT,
        _failed_by_tenant,
        changes_by_time=True,
        for_tenants=True,
        has_window=True,
        takes_queue=True,
        past=_past_of_tenants,
    ),
    AlertMeasure(
        "over_guarantee",
        _("Resources held, as a part of the queue's guarantee"),
        "%",
        SubjectKind.QUEUE,
        _over_guarantee,
        takes_queue=True,
    ),
    AlertMeasure(
        "quota_used",
        _("Resources held, as a part of the tenant's quota"),
        "%",
        SubjectKind.TENANT,
        _quota_used,
        for_tenants=True,
    ),
    AlertMeasure(
        "run_hours",
        _("Run time of a job"),
        _("h"),
        SubjectKind.JOB,
        _run_hours,
        changes_by_time=True,
        for_tenants=True,
        takes_queue=True,
    ),
)
