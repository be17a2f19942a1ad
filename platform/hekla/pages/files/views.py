"""A file of a pod on a page of its own. Nothing in it runs: texts are escaped, and images have no rights."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.streaming import FileResponse
from hekla.domain import previews, text_files
from hekla.domain.errors import NotFound
from hekla.domain.previews import images
from hekla.domain.previews.preview import PreviewKind
from hekla.lib.text import show_bidi_controls
from hekla.live import files
from hekla.pages.frame.people import person
from hekla.pages.jobs import file_rows

_HEAD_BYTES = 16
_TEXTS = frozenset({PreviewKind.TEXT, PreviewKind.TABLE, PreviewKind.NOTEBOOK})
_SANDBOX = "sandbox; default-src 'none'"


@require_safe
def preview(request: HttpRequest, pod_id: int) -> HttpResponse:
    """The beginning of a file, by its kind. The tab Files says why clusters offer no files."""
    pod, path = jobs.pod(pod_id, person(request)), request.GET.get("path", "")
    if not files.has_files(pod):
        return redirect(_tab(pod))
    found, size = files.preview(pod, path)
    folder, _separator, name = path.rpartition("/")
    context = {
        "pod": pod,
        "job": pod.job,
        "name": show_bidi_controls(name),
        "crumbs": file_rows.crumbs(pod, folder),
        "size": size,
        "preview": found,
        "numbers": "\n".join(map(str, range(1, len(found.lines) + 1))),
        "text": "\n".join(found.lines or found.hexdump),
        "download": file_rows.download_url(pod, path),
        "edit": _edit_url(pod, path, request, size) if found.kind in _TEXTS else "",
        "image": f"{reverse('files:image', args=[pod.pk])}?{urlencode({'path': path})}",
    }
    return render(request, "files/preview.html", context)


@require_safe
def image(request: HttpRequest, pod_id: int) -> HttpResponseBase:
    """An image of at most 16 MiB, known by its first bytes. Raises NotFound for any other file."""
    pod, path = jobs.pod(pod_id, person(request)), request.GET.get("path", "")
    if not files.has_files(pod):
        return redirect(_tab(pod))
    head, size = files.read_head(pod, path, _HEAD_BYTES)
    media_type = images.media_type(head)
    if not media_type or size > previews.IMAGE_BYTES:
        raise NotFound(_("The file is no image that can be shown. Download it."))
    content, _size = files.read_head(pod, path, previews.IMAGE_BYTES)
    if images.media_type(content) != media_type:
        raise NotFound(_("The file is no image that can be shown. Download it."))
    headers = {"Content-Security-Policy": _SANDBOX, "X-Content-Type-Options": "nosniff"}
    return HttpResponse(content, content_type=media_type, headers=headers)


@require_safe
def archive(request: HttpRequest, pod_id: int) -> HttpResponseBase:
    """A folder as a zip archive, streamed. A file in it says what is missing, for example links."""
    pod, path = jobs.pod(pod_id, person(request)), request.GET.get("path", "")
    if not files.has_files(pod):
        return redirect(_tab(pod))
    name = f"{path.rpartition('/')[2] or pod.job.name}.zip"
    return FileResponse(files.archive(pod, path), name, "application/zip")


def _edit_url(pod: Pod, path: str, request: HttpRequest, size: int) -> str:
    """The address of the editor; empty if this person cannot edit the file."""
    if size > text_files.MOST_BYTES or not jobs.may_act(person(request), pod.job) or not files.takes_files(pod):
        return ""
    return f"{reverse('files:edit', args=[pod.pk])}?{urlencode({'path': path})}"


def _tab(pod: Pod) -> str:
    return f"{reverse('jobs:detail', args=[pod.job.uid])}?tab=files"
