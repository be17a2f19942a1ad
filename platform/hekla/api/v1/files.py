"""Endpoints of the files that a pod wrote."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.renderers import ApiRenderer
from hekla.api.throttles import PerPersonThrottle, SearchThrottle
from hekla.api.v1.following import AttemptQuery, backend_of, find_pod
from hekla.api.views import ApiView, person, respond
from hekla.apps.jobs import missing_files
from hekla.apps.jobs.models import Pod
from hekla.apps.streaming import FileResponse
from hekla.backends import files
from hekla.backends.base import Backend, PodKey
from hekla.backends.file_tree import FoundFiles, archive, find_files
from hekla.backends.files import FileKind, NoFilesError, NoSuchFileError, PodFile
from hekla.domain import previews
from hekla.domain.errors import NotFound, Refused
from hekla.domain.previews.preview import PreviewKind

_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_READABLE = frozenset({FileKind.FILE, FileKind.FOLDER})
T = TypeVar("T")


class FolderQuery(AttemptQuery):
    path = serializers.CharField(
        max_length=_LONGEST_PATH,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        help_text="parts between slashes, below the working folder; empty: the working folder",
    )


class FileQuery(AttemptQuery):
    path = serializers.CharField(
        max_length=_LONGEST_PATH,
        trim_whitespace=False,
        help_text="parts between slashes, below the working folder",
    )


class NameQuery(FolderQuery):
    q = serializers.CharField(max_length=_LONGEST_NAME, trim_whitespace=False, help_text="a part of the name")


class PodFileSerializer(serializers.Serializer[Any]):
    """An entry of a folder. Links are listed and never followed."""

    name = serializers.CharField(help_text="with escaped control characters")
    kind = serializers.ChoiceField([kind.value for kind in FileKind])
    path = serializers.CharField(allow_null=True, help_text="for requests; null if it cannot be read")
    size_bytes = serializers.IntegerField()
    changed_at = serializers.DateTimeField()


class FolderSerializer(serializers.Serializer[Any]):
    """A folder: folders first, both by name."""

    path = serializers.CharField(allow_blank=True)
    entries = PodFileSerializer(many=True)
    complete = serializers.BooleanField(help_text="false if the folder has more entries")


class CellOutputSerializer(serializers.Serializer[Any]):
    text = serializers.CharField(allow_blank=True)
    media_type = serializers.CharField(allow_blank=True, help_text="of an image; empty for a text")
    image = serializers.CharField(allow_blank=True, help_text="in base64")


class NotebookCellSerializer(serializers.Serializer[Any]):
    """A cell of a notebook. Outputs are texts and bitmap images; others are left out."""

    kind = serializers.ChoiceField(["code", "markdown", "raw"])
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]
    outputs = CellOutputSerializer(many=True)


class FilePreviewSerializer(serializers.Serializer[Any]):
    """The beginning of a file, by its kind. The fields of other kinds are empty."""

    kind = serializers.ChoiceField([kind.value for kind in PreviewKind])
    size_bytes = serializers.IntegerField()
    complete = serializers.BooleanField(source="is_complete", help_text="false if the file has more than is here")
    encoding = serializers.CharField(allow_blank=True)
    media_type = serializers.CharField(allow_blank=True, help_text="of an image, by its first bytes")
    lines = serializers.ListField(child=serializers.CharField(allow_blank=True))
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField(allow_blank=True)))
    cells = NotebookCellSerializer(many=True)
    hexdump = serializers.ListField(child=serializers.CharField(), help_text="of the first 256 bytes")


class FileRenderer(BaseRenderer):
    """Lets clients ask for a file; `FileResponse` writes it."""

    media_type, format, render_style = "application/octet-stream", "file", "binary"


class PodFilesView(ApiView):
    queries = {"get": FolderQuery}

    @extend_schema(responses=FolderSerializer)
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """A folder of the files that a pod wrote, below its working folder; at most 500 entries."""
        path = self.query["path"]
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))
        found = _read(pod, files.list_folder, path, missing_files.no_folder)
        entries = [_entry(path, entry) for entry in found.entries]
        return respond(FolderSerializer({"path": path, "entries": entries, "complete": found.is_complete}))


class PodFileView(ApiView):
    queries = {"get": FileQuery}
    renderer_classes = (ApiRenderer, FileRenderer)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, uid: UUID, task: str, index: int) -> FileResponse:
        """A file that a pod wrote, with the size that it has now: no more is read while it grows."""
        path = self.query["path"]
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))
        chunks, size = _read(pod, files.read_file, path, missing_files.no_file)
        answer = FileResponse(chunks, path.rpartition("/")[2])
        answer.headers["Content-Length"] = str(size)
        return answer


class PodFileSearchView(ApiView):
    queries = {"get": NameQuery}
    throttle_classes = (PerPersonThrottle, SearchThrottle)

    @extend_schema(responses=FolderSerializer)
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Files and folders below a folder whose name contains a text; at most 200, and what is found in 3 seconds."""
        path, text = self.query["path"], self.query["q"]
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))

        def read(backend: Backend, key: PodKey, below: str) -> FoundFiles:
            return find_files(backend, key, below, text)

        found = _read(pod, read, path, missing_files.no_folder)
        entries = [_entry(folder, entry) for folder, entry in found.entries]
        return respond(FolderSerializer({"path": path, "entries": entries, "complete": found.is_complete}))


class PodArchiveView(ApiView):
    queries = {"get": FolderQuery}
    renderer_classes = (ApiRenderer, FileRenderer)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, uid: UUID, task: str, index: int) -> FileResponse:
        """A folder as a zip archive, without compression. Links are left out; a file in it says what is missing."""
        path = self.query["path"]
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))
        chunks = _read(pod, archive, path, missing_files.no_folder)
        return FileResponse(chunks, f"{path.rpartition('/')[2] or pod.job.name}.zip")


class PodFilePreviewView(ApiView):
    queries = {"get": FileQuery}

    @extend_schema(responses=FilePreviewSerializer)
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """The beginning of a file that a pod wrote: lines, the rows of a table, the cells of a notebook, or bytes."""
        path = self.query["path"]
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))
        head, size = _read(pod, _read_preview, path, missing_files.no_file)
        found = asdict(previews.preview(path.rpartition("/")[2], head, size))
        return respond(FilePreviewSerializer({**found, "size_bytes": size, "is_complete": not found["is_cut"]}))


def _entry(folder: str, entry: PodFile) -> dict[str, object]:
    return {
        "name": entry.text,
        "kind": entry.kind.value,
        "path": entry.path_below(folder) if entry.is_utf8 and entry.kind in _READABLE else None,
        "size_bytes": entry.size,
        "changed_at": entry.changed_at,
    }


def _read_preview(backend: Backend, key: PodKey, path: str) -> tuple[bytes, int]:
    return files.read_head(backend, key, path, previews.bytes_to_read(path))


def _read(pod: Pod, read: Callable[[Backend, PodKey, str], T], path: str, missing: Callable[[Pod], str]) -> T:
    key = PodKey(pod.job.uid.hex, pod.task, pod.index, pod.attempt, tenant=pod.job.tenant.slug)
    try:
        return read(backend_of(pod.job), key, path)
    except NoFilesError as error:
        raise Refused(missing_files.no_files(pod)) from error
    except files.UnreadableFilesError as error:
        raise Refused(missing_files.unreadable(pod, str(error))) from error
    except NoSuchFileError as error:
        raise NotFound(missing(pod)) from error
