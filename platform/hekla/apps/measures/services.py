"""Keeps the measures up to date. Nothing else depends on them: what is lost is derived again.

New minutes are added as they pass. Facts that arrive late, and work that turns out to be lost, change hours in the
past: these are marked, and computed again a little later, each one once for all changes of some minutes.
"""

import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.apps.measures import capacities, costs, following, sums
from hekla.apps.measures.job_counting import count_jobs, rebuild_jobs
from hekla.apps.measures.levels import DAY, HOUR, KEEP_DAYS, KEEP_HOURS, KEEP_MINUTES, MEASURED, MINUTE, floor, hours
from hekla.apps.measures.models import (
    ClusterGpuTime,
    GpuCapacity,
    GpuHolding,
    HolderCost,
    HolderGpuTime,
    MeasuredCluster,
    MeasuresCursor,
    NodeGpuTime,
    PartCost,
    PartGpuTime,
    StaleHour,
)
from hekla.apps.measures.retention import delete_oldest

__all__ = ["count_jobs", "rebuild", "rebuild_jobs", "roll_up"]
LAG = timedelta(seconds=20)
"""After this time a minute is over: samples and observations of its end are stored."""
SETTLE = timedelta(minutes=10)
"""How long a stale hour of the last `_RECENT` waits for further changes."""
_RECENT = timedelta(hours=2)
_COST_STEP = timedelta(minutes=10)
"""How often the costs of the hour that goes on are computed."""
_LONGEST_GAP = timedelta(hours=2)
_MOST_SECONDS = 2.0
_JOBS_AT_ONCE = 500
_PART, _EXPENSIVE_SECONDS = 0.04, 5.0
"""The part of the time that stale hours may take, if they take more than these seconds."""
_rests_until: datetime | None = None


def roll_up(*, now: datetime, settle: timedelta = SETTLE, most_seconds: float = _MOST_SECONDS) -> None:
    """Read the log, add the minutes that are over, and compute stale hours again. Stops after some seconds.

    The next call goes on. Concurrent calls wait for nothing: one of them does the work.
    """
    until = time.monotonic() + most_seconds
    while (is_all := _read_part(now)) is False:
        if time.monotonic() > until:
            return
    if is_all is None:
        return
    for cluster_id in MeasuredCluster.objects.order_by("pk").values_list("pk", flat=True):
        _advance(cluster_id, now=now)
    _settle_some(now, settle, max(until, time.monotonic() + most_seconds / 2))  # a busy log leaves time for the past
    _purge(now=now)


def _settle_some(now: datetime, settle: timedelta, until: float) -> None:
    """Compute stale hours again. After expensive ones this process rests, so that they cost a small part of a core."""
    global _rests_until  # noqa: PLW0603
    began = time.monotonic()
    if _rests_until is not None and now < _rests_until and settle:
        return
    while time.monotonic() <= until and _settle_day(now, settle, until):
        pass
    elapsed = time.monotonic() - began
    if elapsed > _EXPENSIVE_SECONDS:
        _rests_until = now + timedelta(seconds=elapsed / _PART)


def _lock() -> MeasuresCursor | None:
    """The row that only one process writes at a time; None if another one has it."""
    MeasuresCursor.objects.get_or_create(pk=1)
    return MeasuresCursor.objects.select_for_update(skip_locked=True).filter(pk=1).first()


@transaction.atomic
def _read_part(now: datetime) -> bool | None:
    """Whether the log was read to its end; None: another process reads it."""
    cursor = _lock()
    return None if cursor is None else following.read_part(cursor, now=now)


@transaction.atomic
def _advance(cluster_id: int, *, now: datetime) -> None:
    """Add the minutes of a cluster that are over. After a long gap its hours are only marked: without sums, they need
    not wait for further changes.
    """
    if _lock() is None:
        return
    cluster, target = MeasuredCluster.objects.get(pk=cluster_id), floor(now - LAG, MINUTE)
    begin = cluster.until or _first(cluster_id, now)
    if begin >= target:
        return
    MeasuredCluster.objects.filter(pk=cluster_id).update(until=target)
    is_long = target - begin > _LONGEST_GAP
    found = hours(begin, target) if is_long else _finished(begin, target)
    rows = [StaleHour(cluster_id=cluster_id, at=at, since=at if is_long else now) for at in found]
    StaleHour.objects.bulk_create(rows, batch_size=2000, ignore_conflicts=True)
    if is_long:
        return
    has_costs = floor(begin, _COST_STEP) < floor(target, _COST_STEP)
    written = list(hours(begin, target))
    for hour in written:
        sums.write(cluster_id, max(begin, hour), min(target, hour + HOUR), now=now)
        if has_costs:
            costs.write(cluster_id, hour, min(target, hour + HOUR))
    _write_days(cluster_id, written, with_costs=has_costs)


def _write_days(cluster_id: int, written: Iterable[datetime], *, with_costs: bool = True) -> None:
    """Add up the days of these hours, each one once."""
    for day in sorted({floor(hour, DAY) for hour in written}):
        sums.write_day(cluster_id, day)
        if with_costs:
            costs.write_day(cluster_id, day)


def _first(cluster_id: int, now: datetime) -> datetime:
    """The first minute with GPUs or pods, of the days that still have all of their hours."""
    spans = GpuCapacity.objects.filter(cluster_id=cluster_id).order_by("begin_at").values_list("begin_at", flat=True)
    pods = GpuHolding.objects.filter(cluster_id=cluster_id).order_by("bound_at").values_list("bound_at", flat=True)
    found = min((at for rows in (spans, pods) if (at := rows.first()) is not None), default=now)
    return max(floor(found, MINUTE), floor(now, DAY) - KEEP_HOURS + DAY)


def _finished(begin: datetime, end: datetime) -> list[datetime]:
    """The hours that end in this time. They are computed once more, when late samples are stored."""
    return [at for at in hours(begin, end) if at + HOUR <= end]


@transaction.atomic
def _settle_day(now: datetime, settle: timedelta, until: float) -> int:
    """Compute the newest stale hour again that waited long enough, and then others of its day, at most until this
    moment of the monotonic clock. Returns how many.

    An older hour waits longer, in proportion to its age: work that is lost after a long time changes all hours before,
    and they are computed once for many such changes. Adding up a day takes about as long as an hour, and is done once.
    """
    if _lock() is None:
        return 0
    due = StaleHour.objects.filter(since__lte=now - settle).order_by("-at", "cluster_id")
    found = next((row for row in due.iterator(chunk_size=100) if _is_settled(row, settle, now)), None)
    if found is None:
        return 0
    others = due.filter(cluster_id=found.cluster_id, at__gte=floor(found.at, DAY), at__lt=found.at)
    measured = MeasuredCluster.objects.filter(pk=found.cluster_id).values_list("until", flat=True).first()
    done = list[datetime]()
    for row in (found, *(row for row in others if _is_settled(row, settle, now))):
        if done and time.monotonic() > until:
            break
        if measured is not None and row.at < measured:
            end = min(row.at + HOUR, measured)
            sums.write(row.cluster_id, row.at, end, now=now)
            costs.write(row.cluster_id, row.at, end)
        done.append(row.at)
    if measured is not None:
        _write_days(found.cluster_id, [at for at in done if at < measured])
    StaleHour.objects.filter(cluster_id=found.cluster_id, at__in=done).delete()
    return len(done)


def _is_settled(row: StaleHour, settle: timedelta, now: datetime) -> bool:
    """Whether a stale hour waited long enough: at most until it is so old that its samples are deleted soon."""
    wait = settle * max(1.0, (now - row.at) / _RECENT)
    return row.since + wait <= now or row.at < floor(now, HOUR) - MEASURED


@transaction.atomic
def _purge(*, now: datetime) -> None:
    """Delete sums and facts that are too old."""
    for level, keep in ((1, KEEP_MINUTES), (60, KEEP_HOURS), (1440, KEEP_DAYS)):
        for sums_of in (NodeGpuTime, HolderGpuTime, ClusterGpuTime, PartGpuTime, HolderCost, PartCost):
            delete_oldest(sums_of, "at", floor(now, HOUR) - keep, level=level)
    if MeasuredCluster.objects.exclude(until=None).exists():
        delete_oldest(GpuCapacity, "end_at", now - KEEP_HOURS)
        delete_oldest(GpuHolding, "finished_at", now - KEEP_HOURS)


def rebuild(*, now: datetime) -> int:
    """Derive all facts again from the log and the rows of jobs, and all sums from them. Returns the number of hours.

    Facts about jobs whose history was purged are kept, and sums of hours whose use is not stored any more. It may be
    interrupted: `roll_up` goes on.
    """
    while _read_part(now) is not True:
        time.sleep(0.1)
    with transaction.atomic():
        MeasuresCursor.objects.select_for_update().get(pk=1)
        _derive_capacity(now)
    last = 0
    while ids := list(Job.objects.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:_JOBS_AT_ONCE]):
        with transaction.atomic():
            MeasuresCursor.objects.select_for_update().get(pk=1)
            following.refresh(ids, now=now)
        last = ids[-1]
    mark_all(now=now)
    count = 0
    while done := _settle_day(now, timedelta(), time.monotonic() + _MOST_SECONDS):
        count += done
    return count


def _derive_capacity(now: datetime) -> None:
    """All spans anew. A cluster whose history is not in the log has none."""
    GpuCapacity.objects.all().delete()
    kinds = (capacities.NODE_CHANGED, capacities.CLUSTER_REMOVED)
    for event in LoggedEvent.objects.filter(kind__in=kinds).order_by("pk").iterator():
        capacities.follow(event)
    GpuCapacity.objects.filter(end_at__lt=now - KEEP_HOURS).delete()


def mark_all(*, now: datetime, before: datetime | None = None) -> None:
    """Mark all hours of all clusters to be computed again, except those whose use is not stored any more.

    `before`: only those that begin earlier.
    """
    for cluster in MeasuredCluster.objects.exclude(until=None):
        _mark_all(cluster, before or now, now)


def _mark_all(cluster: MeasuredCluster, before: datetime, now: datetime) -> None:
    begin, oldest = _first(cluster.pk, now), floor(now, HOUR) - MEASURED
    old = NodeGpuTime.objects.filter(level=60, cluster_id=cluster.pk, at__lt=oldest)
    known = set(old.values_list("at", flat=True).distinct())
    found = [
        StaleHour(cluster_id=cluster.pk, at=at, since=now)
        for at in hours(begin, min(cluster.until or begin, before))
        if at not in known
    ]
    StaleHour.objects.bulk_create(found, batch_size=2000, ignore_conflicts=True)
