"""Copies the files of a pod into the pod of a fork, once that runs.

Both sides may be hostile. Files are read and written by the backends' own ways for that, which follow no link; the walk
is bounded in entries, depth, bytes and time, and counts what it leaves out.
"""

import logging
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from django.utils.translation import gettext as _

from hekla.apps.jobs import missing_files
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import services
from hekla.apps.sharing.models import JobFork
from hekla.apps.workbench import services as workbench
from hekla.backends.base import Backend, BackendError, PodKey, UnknownPod
from hekla.backends.file_tree import FolderWalk
from hekla.backends.files import FileKind, NoFilesError, NoSuchFileError, PodFile, read_file
from hekla.backends.uploads import (
    ANYTHING,
    DRAFT_PREFIX,
    DraftFile,
    DraftLostError,
    FileConflictError,
    NoRoomError,
    WritableFiles,
)
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.domain.errors import HeklaError, Refused
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.workbench import tools

log = logging.getLogger(__name__)
MOST_FILES, MOST_BYTES, MOST_SECONDS = 5_000, 512 * 2**20, 30.0
_OWN_NAMES = (DRAFT_PREFIX, ".hekla-tools")
_FAILURES = (NoSuchFileError, DraftLostError, FileConflictError, UnknownPod, BackendError, OSError)


def copy_files(*, now: datetime) -> int:
    """Copy the files of the forks whose pods run now. Returns the number of forks."""
    claimed = services.claim_forks(now=now)
    for found, target in claimed:
        try:
            _copy(found, target)
        except (Refused, BackendError) as error:
            services.finish_fork(found, message=str(error), now=clock.now())
        else:
            _open_tool(found, target)
    return len(claimed)


def _copy(found: JobFork, target: Pod) -> None:
    """Copy, and record what was copied. Raises Refused if the files of one of both pods cannot be reached."""
    source, backend = found.source, backend_of(target.job.cluster)
    writable = backend.uploads
    if writable is None:
        raise Refused(missing_files.no_uploads(target))
    copying = _Copying(backend_of(source.job.cluster), key_of(source), writable, key_of(target))
    try:
        copying.run()
    except NoFilesError as error:
        raise Refused(missing_files.no_files(source)) from error
    except NoSuchFileError as error:
        raise Refused(missing_files.no_folder(source)) from error
    except NoRoomError as error:
        raise Refused(_("The disk of the node has too little room.")) from error
    done = {"files": copying.files, "size": copying.size, "left_out": copying.left_out}
    services.finish_fork(found, **done, message="", now=clock.now())


class _Copying:
    """One copy, and what it has done."""

    def __init__(self, backend: Backend, source: PodKey, writable: WritableFiles, target: PodKey) -> None:
        self._backend, self._source, self._writable, self._target = backend, source, writable, target
        self.files = self.size = self.left_out = 0
        self._deadline = 0.0

    def run(self) -> None:
        """Copy file by file. Raises NoFilesError, NoSuchFileError, NoRoomError."""
        self._deadline = time.monotonic() + MOST_SECONDS
        walk = FolderWalk(self._backend, self._source, "", seconds=MOST_SECONDS)
        for folder, entry in walk.entries():
            path = entry.path_below(folder)
            if any(part.startswith(_OWN_NAMES) for part in path.split("/")):
                continue
            if entry.kind is FileKind.FOLDER and entry.is_utf8:
                continue
            if self.files >= MOST_FILES or self._is_late or not self._is_possible(entry) or not self._copy_file(path):
                self.left_out += 1
        self.left_out += len(walk.left_out)

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def _is_possible(self, entry: PodFile) -> bool:
        return entry.kind is FileKind.FILE and entry.is_utf8 and self.size + entry.size <= MOST_BYTES

    def _copy_file(self, path: str) -> bool:
        draft = DraftFile(self._target, path, f"{DRAFT_PREFIX}{uuid4().hex}")
        try:
            chunks, size = read_file(self._backend, self._source, path)
            if self.size + size > MOST_BYTES:
                return False
            draft = replace(draft, mark=self._writable.create_draft(draft, size, replaces=ANYTHING))
            offset = 0
            for chunk in chunks:
                if self._is_late:
                    raise DraftLostError(path)
                self._writable.append(draft, offset, chunk)
                offset += len(chunk)
            self._writable.finish(draft, offset, replaces=ANYTHING)
        except NoRoomError:
            self._discard(draft)
            raise
        except _FAILURES:
            self._discard(draft)
            return False
        self.files, self.size = self.files + 1, self.size + offset
        return True

    def _discard(self, draft: DraftFile) -> None:
        with suppress(*_FAILURES):
            self._writable.discard(draft)


def _open_tool(found: JobFork, target: Pod) -> None:
    """Open the tool for the person who forked. Its page says why if that fails."""
    if not found.tool:
        return
    try:
        session, is_new = workbench.open_session(target.pk, Tool(found.tool), user=found.person, now=clock.now())
        if is_new:
            tools.start(session, now=clock.now())
    except HeklaError as error:
        log.info("the tool of a fork does not open: %s", error)
