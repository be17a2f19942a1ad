"""Files of pods, read from their backend for a person who may read their logs."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from hekla.apps.jobs import missing_files
from hekla.apps.jobs.models import Pod
from hekla.backends import file_tree, files
from hekla.backends.file_tree import FoundFiles
from hekla.backends.files import FolderListing, NoFilesError, NoSuchFileError, UnreadableFilesError
from hekla.domain import previews
from hekla.domain.errors import NotFound
from hekla.domain.previews.preview import Preview
from hekla.live.logs import backend_of, key_of

T = TypeVar("T")


def has_files(pod: Pod) -> bool:
    """Whether the pod's cluster offers the files of its pods."""
    return backend_of(pod).files is not None


def takes_files(pod: Pod) -> bool:
    """Whether people can write files into the folders of the pod's cluster."""
    return backend_of(pod).uploads is not None


def list_folder(pod: Pod, path: str) -> FolderListing:
    """The content of a folder of the pod. Raises NotFound. The caller has checked that the person may read the log."""
    return _read(pod, lambda: files.list_folder(backend_of(pod), key_of(pod), path), missing_files.no_folder)


def find_files(pod: Pod, path: str, text: str) -> FoundFiles:
    """Files below a folder of the pod by a part of their name. Raises NotFound. The caller has checked as above."""
    return _read(pod, lambda: file_tree.find_files(backend_of(pod), key_of(pod), path, text))


def archive(pod: Pod, path: str) -> Iterator[bytes]:
    """A folder of the pod as a zip archive. Raises NotFound. The caller has checked as above."""
    return _read(pod, lambda: file_tree.archive(backend_of(pod), key_of(pod), path))


def preview(pod: Pod, path: str) -> tuple[Preview, int]:
    """What is shown of a file of the pod, and its size in bytes. Raises NotFound. The caller has checked as above."""
    head, size = read_head(pod, path, previews.bytes_to_read(path))
    return previews.preview(path.rpartition("/")[2], head, size), size


def read_head(pod: Pod, path: str, most: int) -> tuple[bytes, int]:
    """The first bytes of a file of the pod, at most `most`, and its size. Raises NotFound. Checked as above."""
    return _read(pod, lambda: files.read_head(backend_of(pod), key_of(pod), path, most))


def read_file(pod: Pod, path: str) -> tuple[Iterator[bytes], int]:
    """A file of the pod in chunks, and its size in bytes. Raises NotFound. The caller has checked as above."""
    return _read(pod, lambda: files.read_file(backend_of(pod), key_of(pod), path))


def _read(pod: Pod, read: Callable[[], T], missing: Callable[[Pod], str] = missing_files.no_file) -> T:
    """Raises NotFound with a sentence; `missing`: that for a file or folder that is not there."""
    try:
        return read()
    except NoFilesError as error:
        raise NotFound(missing_files.no_files(pod)) from error
    except UnreadableFilesError as error:
        raise NotFound(missing_files.unreadable(pod, str(error))) from error
    except NoSuchFileError as error:
        raise NotFound(missing(pod)) from error
