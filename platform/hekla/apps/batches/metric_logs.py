"""Stores what the pods of batches print: the work list of the reader, and the metrics that it has read.

A reader claims logs by postponing their due time: if it dies, they are read again a little later, from the same offset.
Only the first replicas of each task are read, and only the beginning of a very long log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from hekla.apps.batches.models import BatchJob, MetricLog
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.metric_lines import MetricSeries, collect
from hekla.domain.phases import FINAL_JOB_PHASES

READ_EVERY = timedelta(seconds=10)
READ_BYTES = 1024 * 1024
MAX_LOG_BYTES = 16 * READ_BYTES
MAX_REPLICAS = 4
"""The number of replicas of each task whose logs are read."""
_CLAIM = _RETRY = timedelta(minutes=1)
_GIVE_UP = timedelta(days=7)
"""How long after the end of its job a log is requested that its cluster does not return."""
_MOST_NEW, _MOST_UNREAD = 1_000, 5_000
_FINAL = [phase.value for phase in FINAL_JOB_PHASES]


@dataclass(frozen=True, slots=True)
class LogPart:
    """Bytes of a log up to `next_offset`. `is_last`: the pod has ended, and no more bytes follow."""

    data: bytes
    next_offset: int
    is_last: bool


def claim(*, now: datetime, limit: int) -> list[MetricLog]:
    """The logs to read next, the most overdue first; other readers do not get them for a minute."""
    with transaction.atomic():
        _add_logs(now)
        due = MetricLog.objects.filter(is_complete=False, due_at__lte=now).order_by("due_at", "pk")
        due = due.select_for_update(skip_locked=True, of=("self",)).defer("pod__job__spec")
        logs = list(due.select_related("member__batch", "pod__job__cluster", "pod__job__tenant")[:limit])
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
    series = {name: MetricSeries.restored(figures, log.points[name]) for name, figures in log.summary.items()}
    has_metrics = collect(series, data.decode(errors="replace"))
    pause = READ_EVERY * (1 + offset // READ_BYTES)  # the longer a log, the more some clusters read of it again
    job = log.pod.job
    is_silent = job.is_final and not (part.is_last or part.data)  # its cluster does not answer
    if is_silent:
        pause = max(pause, _RETRY)
    if len(part.data) >= READ_BYTES:  # more is waiting
        pause = timedelta()
    changes = {
        "offset": offset,
        "is_complete": part.is_last or offset >= MAX_LOG_BYTES or (is_silent and _is_old(job, now)),
        "due_at": now + pause,
    }
    if has_metrics:
        changes["summary"] = {name: one.summary() for name, one in series.items()}
        changes["points"] = {name: one.points() for name, one in series.items()}
    stored = MetricLog.objects.filter(pk=log.pk, offset=log.offset, is_complete=False).update(**changes)
    return bool(stored and has_metrics)


def _is_old(job: Job, now: datetime) -> bool:
    return job.finished_at is not None and job.finished_at < now - _GIVE_UP


def mark_read() -> None:
    """Mark the jobs that have ended and whose logs are read; the others are marked as unread again."""
    logs = MetricLog.objects.filter(member=OuterRef("pk"), is_complete=False)
    unknown = _unknown_pods().filter(job=OuterRef("job_id"))
    ended = BatchJob.objects.filter(is_read=False, job__phase__in=_FINAL)
    ended.exclude(Exists(logs)).exclude(Exists(unknown)).update(is_read=True)
    BatchJob.objects.filter(is_read=True).exclude(job__phase__in=_FINAL).update(is_read=False)


def is_busy() -> bool:
    """Whether there are logs that are not read to their end."""
    return MetricLog.objects.filter(is_complete=False).exists()


def _add_logs(now: datetime) -> None:
    """Add the logs of pods that have started since the last call, of the newest jobs first."""
    unread = BatchJob.objects.filter(is_read=False, job__started_at__isnull=False).order_by("-job_id")
    members = dict(unread.values_list("job_id", "pk")[:_MOST_UNREAD])
    pods = _unknown_pods().filter(job__in=list(members)).order_by("pk").values_list("pk", "job_id")[:_MOST_NEW]
    MetricLog.objects.bulk_create(
        [MetricLog(pod_id=pod, member_id=members[job], due_at=now) for pod, job in pods], ignore_conflicts=True
    )


def _unknown_pods() -> QuerySet[Pod]:
    known = MetricLog.objects.filter(pod=OuterRef("pk"))
    return Pod.objects.filter(~Exists(known), started_at__isnull=False, index__lt=MAX_REPLICAS)


def _whole_lines(part: LogPart) -> tuple[bytes, int]:
    """The lines of this part that are complete, and the offset behind them."""
    if part.is_last or (len(part.data) >= READ_BYTES and b"\n" not in part.data):
        return part.data, part.next_offset
    lines, end, _rest = part.data.rpartition(b"\n")
    behind = len(part.data) - len(lines) - len(end)
    return lines, part.next_offset - behind
