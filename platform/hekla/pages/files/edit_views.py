"""The editor of a text file in the folder of a pod.

The program, or another person, may change the file meanwhile. So the form knows the SHA-256 of what it was filled with,
and the backend replaces the file only if it still has that content. Otherwise the page shows both, and the person
decides. Whatever goes wrong, the answer has the text that was sent.
"""

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.domain import previews, text_files
from hekla.domain.errors import HeklaError, NotFound
from hekla.domain.previews import text as preview_text
from hekla.domain.previews.preview import Preview
from hekla.domain.text_files import TextFile
from hekla.lib import clock
from hekla.lib.diff import DiffLine, diff_lines
from hekla.lib.text import show_bidi_controls
from hekla.live import files
from hekla.pages.files.edit_forms import TextFileForm, file_editor
from hekla.pages.frame.people import person
from hekla.pages.jobs import file_rows
from hekla.pod_files import uploading

_MOST_COMPARED_LINES, _MOST_COMPARED_SIGNS = 2_000, 200_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A file as it is now. `text`: None if it cannot be edited; `digest`: its SHA-256."""

    content: bytes
    size: int
    text: TextFile | None
    digest: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another writer has changed the file. `digest`: of their version; empty if they deleted it.

    `changes`: from their version to the person's; empty if they are too large to compare, or no texts.
    """

    digest: str
    preview: Preview | None
    changes: list[DiffLine]


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pod_id: int) -> HttpResponseBase:
    """Edit the text file `path`, or begin the file `name` in the folder `path`.

    Raises Forbidden for people who may not act on the job.
    """
    pod, path = jobs.pod(pod_id, person(request)), request.GET.get("path", "")
    services.require_right(pod.job, person(request))
    if not files.takes_files(pod):
        return redirect(file_rows.folder_url(pod, ""))
    if request.method == "POST":
        return _save(request, pod, path)
    if name := request.GET.get("name", "").strip("/"):
        return redirect(_address(pod, f"{path}/{name}" if path else name, new="yes"))
    stored = _stored(pod, path, is_new="new" in request.GET)
    if stored and stored.text is None:
        return render(request, "files/not_editable.html", {**_context(pod, path), "size": stored.size})
    text = stored.text if stored and stored.text else TextFile("")
    values = {"text": text.text, "base": stored.digest if stored else "", "has_returns": text.has_returns}
    form = TextFileForm(initial={**values, "new_path": _other_name(path)})
    return _page(request, pod, path, form, is_mixed=text.is_mixed)


def _save(request: HttpRequest, pod: Pod, path: str) -> HttpResponseBase:
    form, is_script = TextFileForm(request.POST), not request.accepts("text/html")
    if not form.is_valid():
        return _refused("", request, pod, path, form)
    values, how = form.cleaned_data, request.POST.get("do", "")
    target, replaces = path, {"replace": values["other"]}.get(how, values["base"])
    if how == "save_as":
        target, replaces = values["new_path"].strip("/"), ""
    try:
        digest = uploading.write_file(
            pod, target, values["content"], replaces=replaces, user=person(request), now=clock.now()
        )
    except uploading.FileExists as error:
        if is_script or target != path:
            return _refused(error.message, request, pod, path, form)
        conflict = _conflict(pod, path, values["text"])
        return _page(request, pod, path, form, status=HTTPStatus.CONFLICT, conflict=conflict)
    except HeklaError as error:
        return _refused(error.message, request, pod, path, form)
    if is_script:
        return JsonResponse({"sha256": digest})
    messages.success(request, _("Saved."))
    return redirect(_address(pod, target, saved="yes"))


def _refused(why: str, request: HttpRequest, pod: Pod, path: str, form: TextFileForm) -> HttpResponse:
    """The form again, with what was typed. A script gets only the reason, and lets its form be sent for the page."""
    if not request.accepts("text/html"):
        return JsonResponse({"detail": why}, status=HTTPStatus.CONFLICT)
    return _page(request, pod, path, form, status=HTTPStatus.CONFLICT, problem=why)


def _conflict(pod: Pod, path: str, text: str) -> Conflict:
    stored = _stored(pod, path, is_new=True)
    if stored is None:
        return Conflict("", None, [])
    name, theirs, mine = path.rpartition("/")[2], stored.text, text_files.unified(text)
    changes = _compared(theirs.text, mine) if theirs else []
    digest = "" if stored.size > len(stored.content) else stored.digest
    return Conflict(digest, previews.preview(name, stored.content, stored.size), changes)


def _compared(theirs: str, mine: str) -> list[DiffLine]:
    """The changes; none if one of the texts is too large to compare, which takes the square of the time."""
    if max(len(theirs), len(mine)) > _MOST_COMPARED_SIGNS:
        return []
    texts = [_visible(theirs), _visible(mine)]
    if any(len(text.splitlines()) > _MOST_COMPARED_LINES for text in texts):  # U+2028 ends a line too
        return []
    return diff_lines(*texts)


def _visible(text: str) -> str:
    return "\n".join(preview_text.visible(line) for line in text.split("\n"))


def _stored(pod: Pod, path: str, *, is_new: bool) -> Stored | None:
    """The file; None if there is none and it may be new. Raises NotFound."""
    try:
        content, size = files.read_head(pod, path, text_files.MOST_BYTES + 1)
    except NotFound:
        if is_new:
            return None
        raise
    text = text_files.read_text(content) if len(content) <= text_files.MOST_BYTES else None
    return Stored(content, max(size, len(content)), text, hashlib.sha256(content).hexdigest())


def _address(pod: Pod, path: str, **more: str) -> str:
    return f"{reverse('files:edit', args=[pod.pk])}?{urlencode({'path': path, **more})}"


def _context(pod: Pod, path: str) -> dict[str, Any]:
    folder, _separator, name = path.rpartition("/")
    return {
        "pod": pod,
        "job": pod.job,
        "path": path,
        "name": show_bidi_controls(name),
        "crumbs": file_rows.crumbs(pod, folder),
        "folder_url": file_rows.folder_url(pod, folder),
        "download": file_rows.download_url(pod, path),
    }


def _page(
    request: HttpRequest,
    pod: Pod,
    path: str,
    form: TextFileForm,
    *,
    status: int = HTTPStatus.OK,
    **more: Any,  # noqa: ANN401
) -> HttpResponse:
    form.fields["text"].widget.attrs |= file_editor(request, path)
    context = {**_context(pod, path), "form": form, "action": _address(pod, path), "most_bytes": text_files.MOST_BYTES}
    return render(request, "files/edit.html", {**context, **more}, status=status)


def _other_name(path: str) -> str:
    """A name beside the file: `src/train.mine.py` for `src/train.py`."""
    folder, separator, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    return f"{folder}{separator}{stem}.mine.{suffix}" if dot and stem else f"{path}.mine"
