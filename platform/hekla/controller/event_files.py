"""Reads the metrics in TensorBoard event files of pods, as `job_metrics` reads those in logs.

What it stores depends on the files alone, so it needs no lease. A program may write files without end: in one run, some
megabytes of the files of each pod are read, and of all pods what fits into a few seconds.
"""

import logging
import time
from datetime import datetime, timedelta

from hekla.apps.job_metrics import event_files
from hekla.apps.job_metrics.event_files import FilesRead, search_pause
from hekla.apps.job_metrics.models import EventMetrics
from hekla.apps.job_metrics.signals import metrics_changed
from hekla.backends.base import Backend, BackendError, PodKey, UnknownPod
from hekla.backends.file_tree import FolderWalk
from hekla.backends.files import FileKind, NoFilesError, NoSuchFileError
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.domain.errors import HeklaError
from hekla.domain.event_files import read_part

_logger = logging.getLogger(__name__)
_MARK = "tfevents"
_AT_ONCE, _MOST_SECONDS, _SEARCH_SECONDS = 20, 6.0, 1.0
_AFTER_A_FAILURE = timedelta(minutes=10)
_MOST_FILES, _PART_BYTES, _RUN_BYTES, _MOST_BYTES = 64, 2**20, 4 * 2**20, 2**30
"""Files of a pod; bytes of a file at once, and of all files of a pod in one run; of a file in all."""


def read_event_files(*, now: datetime) -> int:
    """Store the metrics in the files that are due. Returns the number of pods with new metrics."""
    deadline, changed = time.monotonic() + _MOST_SECONDS, set[int]()
    count = 0
    while time.monotonic() < deadline and (claimed := event_files.claim(now=now, limit=_AT_ONCE)):
        for place, row in enumerate(claimed):
            if time.monotonic() > deadline:
                event_files.release(claimed[place:], due_at=now)
                break
            try:
                has_new = event_files.store(row, _read(row, now), now=now)
            except Exception:
                _logger.exception("the event files of pod %s cannot be read", row.pod_id)
                event_files.release([row], due_at=now + _AFTER_A_FAILURE)
                continue
            if has_new:
                changed.add(row.job_id)
                count += 1
    if changed:
        metrics_changed.send(sender=EventMetrics, jobs=changed)
    return count


def _read(row: EventMetrics, now: datetime) -> FilesRead:
    read = FilesRead(files=dict(row.files))
    try:
        backend, key = backend_of(row.pod.job.cluster), key_of(row.pod)
        if _needs_search(row, now):
            _search(read, backend, key)
    except (BackendError, HeklaError):  # HeklaError: the configuration of the cluster is wrong
        read.is_unknown = True
        return read
    budget, begin = _RUN_BYTES, time.monotonic()
    for path, (offset, is_broken) in sorted(read.files.items()):
        if is_broken or offset >= _MOST_BYTES:
            continue
        if budget <= 0:
            read.has_more = True
            break
        budget -= _read_file(read, backend, key, path, offset)
    read.seconds = time.monotonic() - begin
    return read


def _needs_search(row: EventMetrics, now: datetime) -> bool:
    """Whether the folder may have files that are not known. The older a pod, the more rarely it begins new ones."""
    pod, found_at = row.pod, row.found_at
    if found_at is None or not row.files or (pod.is_final and found_at <= (pod.finished_at or now)):
        return True
    return now - found_at >= search_pause(pod, now)


def _search(read: FilesRead, backend: Backend, key: PodKey) -> None:
    """Add event files that are new."""
    walk = FolderWalk(backend, key, "", seconds=_SEARCH_SECONDS)
    try:
        for folder, entry in walk.entries():
            if _MARK in entry.name and entry.kind is FileKind.FILE and entry.is_utf8 and len(read.files) < _MOST_FILES:
                read.files.setdefault(entry.path_below(folder), [0, 0])
    except (NoFilesError, NoSuchFileError, UnknownPod):
        return
    finally:
        read.has_searched = True


def _read_file(read: FilesRead, backend: Backend, key: PodKey, path: str, offset: int) -> int:
    """Read the next part of a file. Returns the number of its bytes, at most as many as are read at once."""
    if backend.files is None:
        return 0
    try:
        file = backend.files.open_file(key, path)
    except (NoSuchFileError, UnknownPod):
        return 0
    with file:
        size = file.seek(0, 2)
        part = read_part(file, offset, size=size, most=_PART_BYTES)
    folder = path.rpartition("/")[0]
    if part.scalars:
        read.scalars.append((folder, part.scalars))
    read.files[path] = [part.next_offset, int(part.is_broken)]
    length = part.next_offset - offset
    read.has_more |= length > 0 and part.next_offset < size and not part.is_broken
    return min(length, _PART_BYTES)
