"""Files that people write into the folders of pods: who may do it, how much, and which request writes now.

The network of a person may fail while the server still waits for the old request. So no request waits for another one:
each that begins to write raises the fence of the upload, and the next piece of an older one is refused.

The bytes are written by the functions that callers pass. While they write a piece, the row is locked.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import Count, Sum
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs.models import FileUpload, Pod
from hekla.apps.jobs.services.commands import require_right
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events
from hekla.domain.errors import Refused

LIFETIME = timedelta(hours=24)
"""After the last piece."""
_MOST_OPEN, _MOST_OPEN_BYTES = 50, 64 * 2**30
"""Of the unfinished uploads of one person."""
_MOST_EXPIRED = 20


class StaleUpload(Refused):
    """Another request writes this upload now, or the piece does not follow the last one."""

    code = "stale_upload"


def begin_upload(
    pod: Pod, create: Callable[[FileUpload], str], *, path: str, size: int, replaces: str, user: User, now: datetime
) -> FileUpload:
    """Begin an upload. `create` makes the unfinished file and returns its mark. Raises Forbidden, Refused."""
    require_right(pod.job, user)
    if pod.job.deleted_at is not None:
        raise Refused(_("The files of a deleted job are deleted."))
    with unit_of_work():
        _require_room(user, size)
        made = FileUpload(pod=pod, person=user, path=path, size=size, replaces=replaces, expires_at=now + LIFETIME)
        made.mark = create(made)
        made.save(force_insert=True)
    return made


def fence_upload(upload: FileUpload, *, user: User, offset: int | None = None) -> FileUpload:
    """Let the caller be the one that writes the upload from now on, at `offset`. Raises Forbidden, StaleUpload."""
    require_right(upload.pod.job, user)
    with unit_of_work():
        upload = changes.locked(upload)
        if offset is not None:
            _require_offset(upload, offset)  # a lost request that comes late stops no other one
        upload.fence += 1
        upload.save(update_fields=["fence"])
    return upload


def append_to_upload(
    upload: FileUpload, offset: int, data: bytes, write: Callable[[], None], *, user: User, now: datetime
) -> FileUpload:
    """Write a piece at `offset` by `write`. Raises Forbidden, StaleUpload, and Refused beyond the size."""
    require_right(upload.pod.job, user)
    with unit_of_work():
        current = changes.locked(upload)
        if current.fence != upload.fence:
            raise StaleUpload(_("A newer request continues this upload."))
        _require_offset(current, offset)
        if offset + len(data) > current.size:
            raise Refused(_("The upload would be larger than its announced size."))
        write()
        current.received, current.expires_at = offset + len(data), now + LIFETIME
        current.save(update_fields=["received", "expires_at"])
    return current


def finish_upload(upload: FileUpload, seal: Callable[[], str], *, user: User, now: datetime) -> FileUpload:
    """If all bytes are there, name the file by `seal`, which returns its SHA-256. A second call changes nothing.

    `seal` reads large files for minutes, so it runs in no transaction. It returns the same if it is called again, even
    at the same time. Raises Forbidden, and NotFound if the upload was cancelled meanwhile.
    """
    require_right(upload.pod.job, user)
    if upload.received < upload.size or upload.sha256:
        return upload
    digest = seal()
    with unit_of_work():
        upload = changes.locked(upload)
        if upload.sha256:
            return upload
        upload.sha256 = digest
        upload.save(update_fields=["sha256"])
        pod = upload.pod
        facts = {"task": pod.task, "index": pod.index, "attempt": pod.attempt}
        facts |= {"path": upload.path, "size": upload.size, "sha256": upload.sha256}
        tell(pod.job, events.FileUploaded.model_validate(facts), actor=actor_of(user), now=now)
    return upload


def drop_upload(upload: FileUpload, *, user: User) -> None:
    """Forget the upload. A finished file stays. Raises Forbidden."""
    require_right(upload.pod.job, user)
    with unit_of_work():
        FileUpload.objects.filter(pk=upload.pk).delete()


def drop_expired_uploads(*, now: datetime, person: User | None = None) -> list[FileUpload]:
    """Forget some uploads that expired, and return those without a finished file, for its clean-up.

    `person`: only theirs.
    """
    with unit_of_work():
        expired = FileUpload.objects.filter(expires_at__lte=now).select_related("pod__job__cluster", "pod__job__tenant")
        if person is not None:
            expired = expired.filter(person=person)
        found = list(expired.select_for_update(of=("self",), skip_locked=True)[:_MOST_EXPIRED])
        FileUpload.objects.filter(pk__in=[one.pk for one in found]).delete()
    return [one for one in found if not one.sha256]


def _require_offset(upload: FileUpload, offset: int) -> None:
    if upload.received != offset or upload.sha256:
        raise StaleUpload(_("The upload has %(bytes)d bytes. Continue there.") % {"bytes": upload.received})


def _require_room(user: User, size: int) -> None:
    """Raises Refused. Uploads of the same person begin one after another, so that all are counted."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
    unfinished = FileUpload.objects.filter(person=user, sha256="")
    held = unfinished.aggregate(count=Count("pk"), size=Sum("size"))
    if held["count"] >= _MOST_OPEN or (held["size"] or 0) + size > _MOST_OPEN_BYTES:
        raise Refused(
            _("You have too many unfinished uploads: at most %(count)d files and %(size)d GiB. Finish or cancel some.")
            % {"count": _MOST_OPEN, "size": _MOST_OPEN_BYTES // 2**30}
        )
