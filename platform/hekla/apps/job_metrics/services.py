"""Stores what pods print: the work list of the reader, and the metrics that it has read.

The reader follows the event log: a pod that starts gets a row, and one that ends is read to the end of its log at once.
In between, a log with metrics is read every few seconds; the longer another has none, the more rarely. So a job without
metrics costs a few reads, however long it runs.

A reader claims logs by postponing their due time: if it dies, they are read again a little later, from the same offset.
Only the first replicas of each task are read, and the last attempts of a job that restarts often. Rows need no rights:
pods and their output make them.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from hekla.apps.event_log import selectors as event_log
from hekla.apps.job_metrics import selectors
from hekla.apps.job_metrics.models import EventMetrics, MetricCursor, MetricLog
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.job_kinds import EXTERNAL
from hekla.domain.metric_lines import Instants, collect
from hekla.domain.metric_series import MetricSeries
from hekla.domain.phases import FINAL_POD_PHASES
from hekla.domain.stalls import MetricProgress

READ_EVERY = timedelta(seconds=10)
READ_BYTES = 1024 * 1024
MAX_LOG_BYTES = 1024 * READ_BYTES
"""Metrics behind this are not read."""
MOST_LOGS = 32
"""The logs of a job with metrics: those of the last attempts, and of these the first pods."""
_MOST_PAUSE = timedelta(minutes=10)
_SHARE_OF_AGE = 4
"""A log without metrics is read again after a quarter of the time for which its pod has run."""
_CLAIM = _RETRY = timedelta(minutes=1)
_GIVE_UP = timedelta(days=7)
"""How long after the end of its job a log is requested that its cluster does not return."""
_MOST_EVENTS = 2_000
_FINAL = [phase.value for phase in FINAL_POD_PHASES]


@dataclass(frozen=True, slots=True)
class LogPart:
    """Bytes of a log up to `next_offset`. `is_last`: the pod has ended, and no more bytes follow.

    `times`: when they arrived, if it is known: from each offset on, in milliseconds; 0: unknown. `is_unknown`: the
    cluster did not return the log.
    """

    data: bytes
    next_offset: int
    is_last: bool
    times: Sequence[tuple[int, int]] = ()
    is_unknown: bool = False


def follow(*, now: datetime) -> bool:
    """List the logs of the pods that have started or ended since the last call. Returns whether there may be more.

    One follower at a time; its position is stored in the same transaction.
    """
    with transaction.atomic():
        last = event_log.last_number()
        MetricCursor.objects.get_or_create(pk=1, defaults={"number": 0})
        cursor = MetricCursor.objects.select_for_update(skip_locked=True).first()
        if cursor is None or cursor.number == last:
            return False
        events = event_log.of_kinds_after(cursor.number, ("PodPhaseChanged",), limit=_MOST_EVENTS)
        uids = {event.subject.removeprefix("job:") for event in events}
        jobs = Job.objects.filter(uid__in=uids).exclude(kind=EXTERNAL).order_by().values_list("pk", flat=True)
        _list(selectors.unlisted_pods().filter(job__in=list(jobs), started_at__isnull=False), now)
        ended = MetricLog.objects.filter(job__in=list(jobs), is_complete=False, due_at__gt=now, pod__phase__in=_FINAL)
        ended.update(due_at=now)
        files = EventMetrics.objects.filter(job__in=list(jobs), is_complete=False, due_at__gt=now)
        files.filter(pod__phase__in=_FINAL).update(due_at=now)
        is_cut = len(events) == _MOST_EVENTS
        cursor.number = events[-1].pk if is_cut else max(last, cursor.number)
        cursor.save(update_fields=["number"])
    return is_cut


def _list(pods: QuerySet[Pod], now: datetime) -> None:
    found = list(pods.exclude(job__kind=EXTERNAL).order_by("pk").values_list("pk", "job_id"))
    rows = [MetricLog(pod_id=pod, job_id=job, due_at=now) for pod, job in found]
    MetricLog.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_MOST_EVENTS)
    order = F("pod__attempt").desc(), F("pod_id").asc()
    place = Window(RowNumber(), partition_by=F("job_id"), order_by=order)
    ranked = MetricLog.objects.filter(job__in={job for _pod, job in found}).annotate(place=place)
    surplus = list(ranked.filter(place__gt=MOST_LOGS).values_list("pk", flat=True)) if found else []
    if surplus:  # a job that restarts for ever must not fill the disk
        fresh = MetricLog.objects.filter(pk__in=surplus).exclude(is_complete=True, summary={})
        fresh.update(is_complete=True, summary={}, points={})


def claim(*, now: datetime, limit: int) -> list[MetricLog]:
    """The logs to read next, the most overdue first; other readers do not get them for a minute."""
    with transaction.atomic():
        due = MetricLog.objects.filter(is_complete=False, due_at__lte=now).order_by("due_at", "pk")
        due = due.select_for_update(skip_locked=True, of=("self",)).defer("pod__job__spec")
        logs = list(due.select_related("pod__job__cluster", "pod__job__tenant")[:limit])
        MetricLog.objects.filter(pk__in=[log.pk for log in logs]).update(due_at=now + _CLAIM)
    return logs


def release(logs: Sequence[MetricLog], *, due_at: datetime) -> None:
    """Give claimed logs back that were not read. They are due at this time."""
    MetricLog.objects.filter(pk__in=[log.pk for log in logs]).update(due_at=due_at)


def store(log: MetricLog, part: LogPart, *, now: datetime) -> bool:
    """Add the metrics in this part of the log. Returns whether there were any.

    An incomplete last line is read again with the rest of it. If another reader was faster, nothing is stored.
    """
    data, offset = _whole_lines(part)
    series = series_of(log)
    has_metrics = collect(series, data, instants(log, part, now))
    job = log.pod.job
    is_silent = job.is_final and not (part.is_last or part.data)  # its cluster does not answer
    pause = _pause(log, offset, now, has_metrics=bool(series), is_silent=is_silent)
    if len(part.data) >= READ_BYTES:  # more is waiting
        pause = timedelta()
    changes = {
        "offset": offset,
        "read_at": now,
        "is_complete": part.is_last or offset >= MAX_LOG_BYTES or (is_silent and _is_old(job, now)),
        "due_at": now + pause,
        **_growth(log, part, now),
    }
    if has_metrics:
        changes |= documents(series)
    stored = MetricLog.objects.filter(pk=log.pk, offset=log.offset, is_complete=False).update(**changes)
    return bool(stored and has_metrics)


def documents(series: Mapping[str, MetricSeries]) -> dict[str, Any]:
    """The columns of a row with these series."""
    progress = MetricProgress.of(series)
    return {
        "summary": {name: one.summary() for name, one in series.items()},
        "points": {name: one.points() for name, one in series.items()},
        "progress": progress.document() if progress else {},
    }


def _growth(log: MetricLog, part: LogPart, now: datetime) -> dict[str, Any]:
    """The columns that say how the log grows. A log that its cluster did not return may have grown."""
    if part.is_unknown:
        return {}
    if part.next_offset <= log.size:
        return {"known_at": now}
    noted = [ms / 1000 for offset, ms in part.times if offset >= log.size and ms]
    times = [min(now, datetime.fromtimestamp(at, UTC)) for at in noted] or [now]
    pauses = [after - before for before, after in pairwise([log.grew_at or times[0], *times])]
    return {
        "known_at": now,
        "size": part.next_offset,
        "grew_at": times[-1],
        "growths": log.growths + 1,
        "longest_pause": max(log.longest_pause, round(max(pauses).total_seconds())),
    }


def series_of(log: MetricLog | EventMetrics) -> dict[str, MetricSeries]:
    """The metrics of the log or of the event files as far as they are stored, by name."""
    return {name: MetricSeries.restored(figures, log.points[name]) for name, figures in log.summary.items()}


def instants(log: MetricLog, part: LogPart, now: datetime) -> Instants:
    """When the bytes of this part were printed: as its cluster noted, else estimated.

    Without such notes, bytes are spread evenly over the time since the log was last read.
    """
    started, begin = log.pod.started_at, log.read_at or log.pod.started_at
    if started is None or begin is None:
        return lambda _place: None
    end = max(begin, min(now, log.pod.finished_at or now))
    low, width = (begin - started).total_seconds(), (end - begin).total_seconds()
    offsets = [offset for offset, _ms in part.times]

    def instant(place: int) -> float:
        line = bisect_right(offsets, part.next_offset - len(part.data) + place) - 1
        if line >= 0 and part.times[line][1]:
            return round(max(0.0, part.times[line][1] / 1000 - started.timestamp()), 1)
        return round(max(0.0, low + width * place / max(1, len(part.data))), 1)

    return instant


def _pause(log: MetricLog, offset: int, now: datetime, *, has_metrics: bool, is_silent: bool) -> timedelta:
    """When to read on: the longer a log, the more some clusters read of it again."""
    pause = READ_EVERY * (1 + offset // READ_BYTES)
    if not has_metrics and log.pod.started_at:
        pause = max(pause, (now - log.pod.started_at) / _SHARE_OF_AGE)
    return max(min(pause, _MOST_PAUSE), _RETRY if is_silent else READ_EVERY)


def _is_old(job: Job, now: datetime) -> bool:
    return job.finished_at is not None and job.finished_at < now - _GIVE_UP


def _whole_lines(part: LogPart) -> tuple[bytes, int]:
    """The lines of this part that are complete, and the offset behind them."""
    if part.is_last or (len(part.data) >= READ_BYTES and b"\n" not in part.data):
        return part.data, part.next_offset
    lines, end, _rest = part.data.rpartition(b"\n")
    behind = len(part.data) - len(lines) - len(end)
    return lines, part.next_offset - behind
