"""Files of pods, read from their backend for a person who may read their logs."""

from collections.abc import Iterator
from typing import BinaryIO

from django.utils.translation import gettext as _

from hekla.apps.jobs.models import Pod
from hekla.backends.base import BackendError, UnknownPod
from hekla.backends.files import FolderListing, NoSuchFileError, PodFiles
from hekla.domain.errors import NotFound
from hekla.live.logs import backend_of, key_of

_CHUNK_BYTES = 256 * 1024


def has_files(pod: Pod) -> bool:
    """Whether the pod's cluster offers the files of its pods."""
    return backend_of(pod).files is not None


def list_folder(pod: Pod, path: str) -> FolderListing:
    """The content of a folder of the pod. Raises NotFound. The caller has checked that the person may read the log."""
    try:
        return _files(pod).list_folder(key_of(pod), path)
    except (NoSuchFileError, UnknownPod) as error:
        raise NotFound(_no_folder(pod)) from error


def open_file(pod: Pod, path: str) -> tuple[Iterator[bytes], int]:
    """A file of the pod in chunks, and its size in bytes now: no more is read. Raises NotFound."""
    try:
        file = _files(pod).open_file(key_of(pod), path)
    except (NoSuchFileError, UnknownPod) as error:
        raise NotFound(_("The pod has no such file. It was deleted, or a link is in its place.")) from error
    size = file.seek(0, 2)
    file.seek(0)
    return _chunks(file, size), size


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    with file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk


def _files(pod: Pod) -> PodFiles:
    try:
        found = backend_of(pod).files
    except BackendError as error:
        raise NotFound(str(error)) from error
    if found is None:
        raise NotFound(_("The cluster %(name)s does not offer the files of its pods.") % {"name": pod.job.cluster})
    return found


def _no_folder(pod: Pod) -> str:
    if pod.job.deleted_at:
        return _("The files of a deleted job are deleted.")
    if pod.started_at is None:
        return _("The pod has not started, so it has no files.")
    return _("The pod has no such folder. It was deleted, or a link is in its place.")
