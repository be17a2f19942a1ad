"""Unfinished and finished uploads of files."""

from uuid import UUID

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import FileUpload, Pod
from hekla.apps.jobs.selectors.visibility import known_to
from hekla.domain.errors import NotFound

_MOST = 50


def unfinished_uploads(pod: Pod, user: User) -> list[FileUpload]:
    """The unfinished uploads of this person to a pod, newest first."""
    return list(FileUpload.objects.filter(pod=pod, person=user, sha256="").order_by("-pk")[:_MOST])


def upload(uid: UUID, user: User) -> FileUpload:
    """An upload to a job that this person can see. Raises NotFound."""
    found = (
        FileUpload.objects.filter(uid=uid, pod__job__in=known_to(user).order_by())
        .select_related("pod__job__cluster__lease", "pod__job__tenant", "pod__job__owner")
        .first()
    )
    if found is None:
        raise NotFound(_("Unknown upload. It expired, or was cancelled."))
    return found
