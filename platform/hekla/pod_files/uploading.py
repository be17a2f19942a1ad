"""Writing a file into the folder of a pod: the row of the upload, and each step at the pod's backend."""

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import missing_files, services
from hekla.apps.jobs.models import FileUpload, Job, Pod
from hekla.apps.usage import folders
from hekla.backends.base import Backend, BackendError, PodKey, UnknownPod
from hekla.backends.files import NoSuchFileError
from hekla.backends.pool import get_backend
from hekla.backends.uploads import (
    DRAFT_PREFIX,
    DraftFile,
    DraftLostError,
    FileConflictError,
    NoRoomError,
    WritableFiles,
)
from hekla.domain.errors import HeklaError, NotFound, Refused

T = TypeVar("T")


class FileExists(Refused):
    """The file exists, or has another content than expected."""

    code = "file_exists"


def require_uploads(pod: Pod) -> WritableFiles:
    """The facet of the pod's backend. Raises Refused if its cluster takes no files."""
    facet = _backend_of(pod.job).uploads
    if facet is None:
        raise Refused(missing_files.no_uploads(pod))
    return facet


def begin(pod: Pod, *, path: str, size: int, replaces: str, user: User, now: datetime) -> FileUpload:
    """Begin an upload, with an empty draft. Raises Forbidden, Refused, FilesFull, FileExists, NotFound."""
    facet = require_uploads(pod)
    folders.require_room(pod.job.tenant, size)

    def create(made: FileUpload) -> str:
        return _checked(pod, lambda: facet.create_draft(_draft(made), size, replaces=replaces))

    return services.begin_upload(pod, create, path=path, size=size, replaces=replaces, user=user, now=now)


def append(upload: FileUpload, offset: int, data: bytes, *, user: User, now: datetime) -> FileUpload:
    """Write the next bytes. Raises Forbidden, Refused, StaleUpload, NotFound."""
    facet, draft = require_uploads(upload.pod), _draft(upload)

    def write() -> None:
        _checked(upload.pod, lambda: facet.append(draft, offset, data))

    return services.append_to_upload(upload, offset, data, write, user=user, now=now)


def finish(upload: FileUpload, *, user: User, now: datetime) -> FileUpload:
    """The upload, with its file in place if all bytes are there. Raises Forbidden, Refused, FileExists, NotFound."""
    if upload.received < upload.size or upload.sha256:
        return upload
    pod, draft = upload.pod, _draft(upload)
    facet = require_uploads(pod)

    def seal() -> str:
        return _checked(pod, lambda: facet.finish(draft, upload.size, replaces=upload.replaces))

    finished = services.finish_upload(upload, seal, user=user, now=now)
    folders.note_upload(pod.job, upload.size, now=now)
    return finished


def write_file(pod: Pod, path: str, content: bytes, *, replaces: str, user: User, now: datetime) -> str:
    """Write a whole small file, and return its SHA-256. Raises Forbidden, Refused, FileExists, NotFound."""
    upload = begin(pod, path=path, size=len(content), replaces=replaces, user=user, now=now)
    try:
        if content:
            upload = append(upload, 0, content, user=user, now=now)
        digest = finish(upload, user=user, now=now).sha256
    except HeklaError:
        cancel(upload, user=user)
        raise
    services.drop_upload(upload, user=user)
    return digest


def cancel(upload: FileUpload, *, user: User) -> None:
    """Forget an upload and its draft. A finished file stays. Raises Forbidden."""
    services.drop_upload(upload, user=user)
    if not upload.sha256:
        _discard(upload)


def drop_expired(*, now: datetime, person: User | None = None) -> int:
    """Forget uploads that nobody has continued for a day, with their drafts. Returns their number, a part of them.

    `person`: only theirs, because a pod that does not answer costs seconds. Each is waited for once.
    """
    expired, silent = services.drop_expired_uploads(now=now, person=person), set[int]()
    for upload in expired:
        if upload.pod_id not in silent and not _discard(upload):
            silent.add(upload.pod_id)
    return len(expired)


def _discard(upload: FileUpload) -> bool:
    """Delete the draft. Returns whether its pod answered.

    Otherwise it stays until its job is deleted: the cluster may be that of others.
    """
    with contextlib.suppress(UnknownPod, HeklaError):
        if (facet := _backend_of(upload.pod.job).uploads) is not None:
            try:
                facet.discard(_draft(upload))
            except BackendError:
                return False
    return True


def _backend_of(job: Job) -> Backend:
    return get_backend(**clusters.backend_facts(job.cluster), home=settings.HEKLA_HOME)


def _draft(upload: FileUpload) -> DraftFile:
    pod = upload.pod
    key = PodKey(pod.job.uid.hex, pod.task, pod.index, pod.attempt, tenant=pod.job.tenant.slug)
    return DraftFile(key, upload.path, f"{DRAFT_PREFIX}{upload.uid.hex}", upload.mark)


def _checked(pod: Pod, step: Callable[[], T]) -> T:
    """The result of a step of the backend; its errors as sentences."""
    try:
        return step()
    except (NoSuchFileError, UnknownPod) as error:
        raise NotFound(missing_files.no_folder(pod)) from error
    except FileConflictError as error:
        raise FileExists(
            _("A file of that name exists, or has changed. Replace it, or choose another name.")
        ) from error
    except DraftLostError as error:
        raise NotFound(_("The pod changed or deleted the unfinished file. Upload it again.")) from error
    except NoRoomError as error:
        raise Refused(_("The disk of the pod's node has too little room for this file.")) from error
    except BackendError as error:
        raise Refused(missing_files.unwritable(pod, str(error))) from error
    except OSError as error:
        raise Refused(_("The file cannot be written: %(why)s.") % {"why": error.strerror}) from error
