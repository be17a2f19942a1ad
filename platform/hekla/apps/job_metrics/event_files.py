"""Stores the metrics in TensorBoard event files of pods: the work list of the reader, and what it has read.

A pod gets a row when its log is read for the first time, if its cluster offers files. While it has no event file, its
folder is searched more and more rarely; when it ends without one, the row is deleted. Rows need no rights: pods and
their files make them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from hekla.apps.job_metrics.models import EventMetrics
from hekla.apps.job_metrics.services import MOST_LOGS, READ_EVERY, documents, series_of
from hekla.apps.jobs.models import Pod
from hekla.domain.event_files import Scalar, metric_name
from hekla.domain.metric_lines import MAX_NAMES
from hekla.domain.metric_series import MetricSeries

_SEARCH_EVERY = timedelta(minutes=1)
_CLAIM = timedelta(minutes=1)
_MOST_PAUSE, _SHARE_OF_AGE, _SHARE_WITH_FILES = timedelta(minutes=10), 4, 20
_EXPENSIVE_SECONDS, _REST = 0.5, 4
"""After a read that takes longer, the files of the pod are left for four times as long: others wait too."""
_GIVE_UP = timedelta(days=7)


@dataclass(slots=True)
class FilesRead:
    """What one run has read of the files of a pod.

    `files`: as in the row, now; `scalars`: by the folder of their file, in the order of the files. `has_searched`: for
    further files. `has_more`: bytes are left for the next run. `is_unknown`: the cluster did not answer. `seconds`: how
    long reading took.
    """

    files: dict[str, list[int]] = field(default_factory=dict)
    scalars: list[tuple[str, Sequence[Scalar]]] = field(default_factory=list)
    has_searched: bool = False
    has_more: bool = False
    is_unknown: bool = False
    seconds: float = 0.0


def list_pods(pods: Collection[Pod], *, now: datetime) -> None:
    """Put these pods on the work list. Of a job that restarts often, only the last attempts stay."""
    rows = [EventMetrics(pod=pod, job_id=pod.job_id, due_at=now) for pod in pods]
    with transaction.atomic():
        EventMetrics.objects.bulk_create(rows, ignore_conflicts=True)
        for job in {pod.job_id for pod in pods if pod.attempt or pod.slot >= MOST_LOGS}:
            newest = EventMetrics.objects.filter(job=job).order_by("-pod__attempt", "pod")
            EventMetrics.objects.filter(pk__in=list(newest.values_list("pk", flat=True)[MOST_LOGS:])).delete()


def claim(*, now: datetime, limit: int) -> list[EventMetrics]:
    """The pods whose files are read next, the most overdue first; other readers do not get them for a minute."""
    with transaction.atomic():
        due = EventMetrics.objects.filter(is_complete=False, due_at__lte=now).order_by("due_at", "pk")
        due = due.select_for_update(skip_locked=True, of=("self",)).defer("pod__job__spec")
        rows = list(due.select_related("pod__job__cluster", "pod__job__tenant")[:limit])
        EventMetrics.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=now + _CLAIM)
    return rows


def release(rows: Sequence[EventMetrics], *, due_at: datetime) -> None:
    """Give claimed rows back that were not read. They are due at this time."""
    EventMetrics.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=due_at)


def store(row: EventMetrics, read: FilesRead, *, now: datetime) -> bool:
    """Add what was read. Returns whether there were metrics. If another reader was faster, nothing is stored."""
    series, folders = series_of(row), dict(row.folders)
    has_metrics = _collect(series, folders, row, read)
    own = EventMetrics.objects.filter(pk=row.pk, read_at=row.read_at)
    is_over = row.pod.is_final and (not (read.has_more or read.is_unknown) or _is_old(row, now))
    if is_over and not series:
        own.delete()
        return False
    changes: dict[str, Any] = {
        "files": read.files,
        "read_at": now,
        "is_complete": is_over,
        "due_at": now + _pause(row, read, now),
        **({"found_at": now} if read.has_searched else {}),
        **({} if read.is_unknown else {"known_at": now}),
    }
    if has_metrics:
        changes["folders"] = folders
        changes |= documents(series)
    return bool(own.update(**changes) and has_metrics)


def _collect(series: dict[str, MetricSeries], folders: dict[str, str], row: EventMetrics, read: FilesRead) -> bool:
    """Add the scalars to the series, by name. Returns whether there were any."""
    found, started = False, row.pod.started_at
    begin = started.timestamp() if started else None
    for folder, scalars in read.scalars:
        names: dict[str, str] = {}
        for scalar in scalars:
            name = names.get(scalar.tag)
            if name is None:
                name = names[scalar.tag] = _name(folders, folder, scalar.tag)
            if not name or (name not in series and len(series) >= MAX_NAMES):
                continue
            folders.setdefault(name, folder)
            seconds = None if begin is None else round(max(0.0, scalar.at - begin), 1)
            series.setdefault(name, MetricSeries()).add(float(scalar.step), scalar.value, seconds)
            found = True
    return found


def _name(folders: Mapping[str, str], folder: str, tag: str) -> str:
    """The name of the metric of a tag in this folder; empty for a tag without a name."""
    name = metric_name(folder, tag)
    if not name or folders.get(name, folder) == folder:
        return name
    other = f"{name} ({metric_name('', folder.rpartition('/')[2]) or '.'})"
    return other if folders.get(other, folder) == folder else ""


def _pause(row: EventMetrics, read: FilesRead, now: datetime) -> timedelta:
    if read.is_unknown:
        return _MOST_PAUSE
    if read.has_more:
        return timedelta(seconds=_REST * read.seconds) if read.seconds > _EXPENSIVE_SECONDS else timedelta()
    if read.files or row.pod.started_at is None:
        return READ_EVERY
    return max(READ_EVERY, min(_MOST_PAUSE, (now - row.pod.started_at) / _SHARE_OF_AGE))


def search_pause(pod: Pod, now: datetime) -> timedelta:
    """When to search the folder of a pod with event files for further ones."""
    age = now - (pod.started_at or now)
    return max(_SEARCH_EVERY, min(_MOST_PAUSE, age / _SHARE_WITH_FILES))


def _is_old(row: EventMetrics, now: datetime) -> bool:
    job = row.pod.job
    return job.finished_at is not None and job.finished_at < now - _GIVE_UP
