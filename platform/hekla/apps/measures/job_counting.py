"""Counts what happens to jobs. Follows the event log, derives the moments of the jobs that it names, and adds them up.

Nothing else depends on the sums: what is lost is derived again. Moments outlive purged jobs.
"""

import time
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import BigIntegerField, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, TruncHour

from hekla.apps import due_work
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent, Numbering
from hekla.apps.jobs.models import Job
from hekla.apps.measures import job_moments, job_sums
from hekla.apps.measures.levels import DAY, HOUR, KEEP_DAYS, KEEP_HOURS, KEEP_MINUTES, floor
from hekla.apps.measures.models import JobMoment, JobsCursor, JobSum, PartJobSum, StaleJobHour
from hekla.apps.measures.retention import delete_oldest

KINDS = ("JobSubmitted", "JobPhaseChanged", "JobReassigned", "JobChanged", "PodEvicted")
WAITS = ("JobUnschedulable", "GangPhaseChanged")
"""How a job waits counts when it starts. Only a job that has started is derived again for such an event."""
SETTLE = timedelta(minutes=10)
"""How long a stale hour waits for further changes. The present one and the one before wait for none."""
_AT_ONCE, _JOBS_AT_ONCE = 2000, 200
_MOST_SECONDS = 2.0
_FIELDS = (
    *("cluster_id", "queue_id", "tenant_id", "owner_id", "kind", "size", "model", "part"),
    *("at", "milliseconds", "node", "image", "exit_code"),
)
_Key = tuple[int, str, int]


def count_jobs(*, now: datetime, settle: timedelta = SETTLE, most_seconds: float = _MOST_SECONDS) -> None:
    """Read the log, and write the sums of stale hours again. Stops after some seconds; the next call goes on.

    Concurrent calls wait for nothing: one of them does the work.
    """
    until = time.monotonic() + most_seconds
    while (is_all := _read_part(now)) is False and time.monotonic() <= until:
        pass
    while _settle_one(now, settle, with_new=bool(is_all)) and time.monotonic() <= until + most_seconds:
        pass
    _purge(now=now)


def rebuild_jobs(*, now: datetime) -> int:
    """Derive all moments of the jobs that are not purged again, and all sums of hours. Returns the number of hours."""
    while _read_part(now) is not True:
        time.sleep(0.1)
    last = 0
    while ids := list(Job.objects.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:_JOBS_AT_ONCE]):
        with transaction.atomic():
            JobsCursor.objects.select_for_update().get(pk=1)
            _refresh(ids, now=now)
        last = ids[-1]
    with transaction.atomic():
        JobsCursor.objects.select_for_update().get(pk=1)
        mark_job_hours(now=now)
    count = 0
    while _settle_one(now, timedelta()):
        count += 1
    return count


def counting_work() -> list[QuerySet[Any, Any]]:
    """Events of jobs that were not read, or hours to add up again (see `due_work`).

    A long part of the log is read anyway, or looking for jobs in it takes long.
    """
    last = Coalesce(Subquery(JobsCursor.objects.values("last")[:1]), 0, output_field=BigIntegerField())
    return [
        LoggedEvent.objects.filter(id__gt=last, kind__in=KINDS),
        Numbering.objects.filter(last__gt=last + _AT_ONCE),
        StaleJobHour.objects.filter(since__lte=due_work.present()),
    ]


def reader_position() -> int | None:
    """The number of the last event up to which jobs are counted; None if none was read yet."""
    return JobsCursor.objects.values_list("last", flat=True).first()


def _lock() -> JobsCursor | None:
    """The row that only one process writes at a time; None if another one has it."""
    JobsCursor.objects.get_or_create(pk=1)
    return JobsCursor.objects.select_for_update(skip_locked=True).filter(pk=1).first()


@transaction.atomic
def _read_part(now: datetime) -> bool | None:
    """Read the next part of the log. Returns whether that was all; None: another process reads it."""
    cursor = _lock()
    if cursor is None:
        return None
    last = event_log.last_number()
    found = event_log.of_kinds_after(cursor.last, (*KINDS, *WAITS), limit=_AT_ONCE)
    ids = _named(found) if found else []
    for begin in range(0, len(ids), _JOBS_AT_ONCE):  # each has a history of its own
        _refresh(ids[begin : begin + _JOBS_AT_ONCE], now=now)
    is_all = len(found) < _AT_ONCE
    cursor.last = max(last, cursor.last) if is_all else found[-1].pk
    cursor.at = now if is_all else found[-1].at
    cursor.save(update_fields=["last", "at"])
    return is_all


def _named(found: Iterable[LoggedEvent]) -> list[int]:
    """The jobs that these events change."""
    by_kind: dict[bool, set[UUID]] = {True: set(), False: set()}
    for event in found:
        by_kind[event.kind in WAITS].add(UUID(event.subject.removeprefix("job:")))
    condition = Q(uid__in=by_kind[False]) | Q(uid__in=by_kind[True], started_at__isnull=False)
    return list(Job.objects.filter(condition).values_list("pk", flat=True))


def _refresh(ids: Collection[int], *, now: datetime) -> None:
    """Derive the moments of these jobs again, and mark the hours that differ."""
    stored = {_key(row): row for row in JobMoment.objects.filter(job_id__in=ids)}
    fresh = {_key(row): row for row in job_moments.of_jobs(ids)}
    oldest = _oldest(now)
    changed = [row for key, row in fresh.items() if row.at >= oldest and _differs(stored.get(key), row)]
    present = {row.job_id for row in fresh.values()}  # others were purged meanwhile; their moments stay
    gone = [row for key, row in stored.items() if key not in fresh and row.job_id in present]
    for row in gone:
        row.delete()
    JobMoment.objects.bulk_create(
        changed,
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["job_id", "what", "number"],
        update_fields=_FIELDS,
    )
    before = [stored[_key(row)] for row in changed if _key(row) in stored]
    differing = (row for row in (*changed, *gone, *before) if row.at >= oldest)  # else the sums would lose the deleted
    _mark({(row.cluster_id, floor(row.at, HOUR)) for row in differing}, now)


def _key(row: JobMoment) -> _Key:
    return row.job_id, row.what, row.number


def _differs(old: JobMoment | None, new: JobMoment) -> bool:
    return old is None or any(getattr(old, name) != getattr(new, name) for name in _FIELDS)


_MARK = (
    "INSERT INTO measures_stalejobhour (cluster_id, at, since)"
    " SELECT *, %s::timestamptz FROM unnest(%s::bigint[], %s::timestamptz[])"
    " ON CONFLICT (cluster_id, at) DO UPDATE SET since = least(measures_stalejobhour.since, excluded.since)"
)


def _mark(found: Collection[tuple[int, datetime]], now: datetime) -> None:
    """Mark these hours of clusters. One that is marked from a later time on is marked from now on."""
    rows = sorted(found)
    with connection.cursor() as cursor:
        cursor.execute(_MARK, [now, [cluster for cluster, _at in rows], [at for _cluster, at in rows]])


def _oldest(now: datetime) -> datetime:
    """Moments are kept from then on: those of the days that still have all of their hours."""
    return floor(now, DAY) - KEEP_HOURS + DAY


def mark_job_hours(*, now: datetime, between: tuple[datetime, datetime] | None = None) -> None:
    """Mark all hours with moments or sums, as long as the moments of the whole hour are kept.

    `between`: only hours from the first of these times up to the second.
    """
    begin, end = between or (_oldest(now), now + HOUR)
    moments = JobMoment.objects.filter(at__gte=max(begin, _oldest(now)), at__lt=end).order_by()
    found = set(moments.values_list("cluster_id").annotate(hour=TruncHour("at", tzinfo=UTC)).distinct())
    sums = JobSum.objects.filter(level=60, at__gte=max(floor(begin, HOUR), _oldest(now)), at__lt=end)
    _mark(found | set(sums.values_list("cluster_id", "at").distinct()), now)


@transaction.atomic
def _settle_one(now: datetime, settle: timedelta, *, with_new: bool = False) -> bool:
    """Add up the newest stale hour again. Returns whether there was one. The present hour is marked again for its end.

    `with_new`: hours without sums wait for no further changes, because the log was read to its end.
    """
    if _lock() is None:
        return False
    is_due = Q(since__lte=now - settle) | Q(at__gte=floor(now, HOUR) - HOUR, since__lte=now)
    if with_new:
        sums = JobSum.objects.filter(level=60, cluster_id=OuterRef("cluster_id"), at=OuterRef("at"))
        is_due |= Q(~Exists(sums), since__lte=now)
    found = StaleJobHour.objects.filter(is_due).order_by("-at", "cluster_id").first()
    if found is None:
        return False
    is_over = found.at + HOUR <= now
    job_sums.write(found.cluster_id, found.at, now=now, with_day=is_over and not _is_day_stale(found))
    if not is_over:
        StaleJobHour.objects.filter(pk=found.pk).update(since=found.at + HOUR)
    else:
        found.delete()
    return True


def _is_day_stale(hour: StaleJobHour) -> bool:
    """Whether other hours of its day are marked: the last one of them writes the day."""
    day = floor(hour.at, DAY)
    found = StaleJobHour.objects.filter(cluster_id=hour.cluster_id, at__gte=day, at__lt=day + DAY)
    return found.exclude(at=hour.at).exists()


@transaction.atomic
def _purge(*, now: datetime) -> None:
    """Delete sums and moments that are too old."""
    for level, keep in ((1, KEEP_MINUTES), (60, KEEP_HOURS), (1440, KEEP_DAYS)):
        for sums_of in (JobSum, PartJobSum):
            delete_oldest(sums_of, "at", floor(now, HOUR) - keep, level=level)
    delete_oldest(JobMoment, "at", _oldest(now))
