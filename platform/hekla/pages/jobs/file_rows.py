"""The files of a pod as rows of the tab Files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.jobs import missing_files
from hekla.apps.jobs.models import Pod
from hekla.backends.files import FileKind, PodFile, visible_name
from hekla.domain.errors import NotFound
from hekla.lib.text import show_bidi_controls
from hekla.live import files

_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class FileRow:
    """An entry of a folder. `name`: as people read it. `url`: of the folder or the preview; empty if it has none.

    `download`: the address of the content of a file; empty for others.
    """

    name: str
    kind: str
    size: int
    changed_at: datetime
    url: str
    note: str
    download: str = ""

    @property
    def is_folder(self) -> bool:
        return self.kind == FileKind.FOLDER

    @property
    def is_file(self) -> bool:
        return self.kind == FileKind.FILE


@dataclass(frozen=True, slots=True)
class Crumb:
    """A folder above the open one, or itself."""

    name: str
    url: str


def listing(pod: Pod, path: str, find: str = "") -> dict[str, Any]:
    """The context: `files_of`, the pod; `rows`; `crumbs`; `is_cut`; or `no_files`, a sentence that says why.

    `find`: show what is below the folder and has this in its name instead.
    `uploads_url`, `edit_url`: where to upload and edit files; missing if the cluster takes none.
    """
    archive = f"{reverse('files:archive', args=[pod.pk])}?{urlencode({'path': path})}"
    context: dict[str, Any] = {
        "files_of": pod,
        "archive": archive,
        "crumbs": crumbs(pod, path),
        "rows": (),
        "path": path,
    }
    if not files.has_files(pod):
        return {**context, "no_files": missing_files.no_files(pod)}
    try:
        if find:
            return {**context, **_matches(pod, path, find[:_LONGEST_NAME])}
        found = files.list_folder(pod, path)
    except NotFound as error:
        return {**context, "no_files": error.message}
    if files.takes_files(pod):
        address = reverse("api:v1:pod_uploads", args=[pod.job.uid, pod.task, pod.index])
        context["uploads_url"] = f"{address}?attempt={pod.attempt}"
        context["edit_url"] = reverse("files:edit", args=[pod.pk])
    return {**context, "rows": [_row(pod, path, one) for one in found.entries], "is_cut": not found.is_complete}


def _matches(pod: Pod, path: str, find: str) -> dict[str, Any]:
    """The rows of the files below a folder whose name contains a text, each with its folder."""
    found = files.find_files(pod, path, find)
    return {
        "rows": [_row(pod, folder, entry, below=path) for folder, entry in found.entries],
        "find": find,
        "is_cut": not found.is_complete,
    }


def _row(pod: Pod, path: str, entry: PodFile, *, below: str | None = None) -> FileRow:
    """`below`: name the folder of the entry, as seen from this folder."""
    inner = entry.path_below(path)
    url = _url(pod, inner, entry.kind) if entry.is_utf8 else ""
    download = download_url(pod, inner) if url and entry.kind is FileKind.FILE else ""
    note = _note(entry.kind, is_text=entry.is_utf8)
    between = path.removeprefix(below).lstrip("/") if below is not None else ""
    name = f"{visible_name(between)}/{entry.text}" if between else entry.text
    return FileRow(name, entry.kind, entry.size, entry.changed_at, url, note, download)


def _note(kind: FileKind, *, is_text: bool) -> str:
    if not is_text:
        return _("Its name is not UTF-8, so it cannot be requested.")
    return {FileKind.LINK: _("link, not followed"), FileKind.OTHER: _("no file")}.get(kind, "")


def _url(pod: Pod, path: str, kind: FileKind) -> str:
    if kind is FileKind.FOLDER:
        return folder_url(pod, path)
    if kind is FileKind.FILE:
        return f"{reverse('files:preview', args=[pod.pk])}?{urlencode({'path': path})}"
    return ""


def download_url(pod: Pod, path: str) -> str:
    """The address of the content of a file."""
    return f"{reverse('live:download_file', args=[pod.pk])}?{urlencode({'path': path})}"


def folder_url(pod: Pod, path: str) -> str:
    """The address of the tab Files with this folder open."""
    query = {"tab": "files", "pod": pod.pk, **({"path": path} if path else {})}
    return f"{reverse('jobs:detail', args=[pod.job.uid])}?{urlencode(query)}"


def crumbs(pod: Pod, path: str) -> Sequence[Crumb]:
    """The folders from the working folder to this one."""
    parts = path.split("/") if path else []
    named = [(show_bidi_controls(part), "/".join(parts[: place + 1])) for place, part in enumerate(parts)]
    return [Crumb(name, folder_url(pod, inner)) for name, inner in [(_("Working folder"), ""), *named]]
