"""Pages of recordings: the player with its text, the file, cutting and deleting."""

import re
from itertools import islice
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.forms import attach
from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import files, selectors, services
from hekla.apps.sharing.models import Recording
from hekla.apps.streaming import FileResponse
from hekla.domain.errors import Forbidden, HeklaError
from hekla.lib import asciicast, clock
from hekla.pages.frame.people import person
from hekla.pages.sharing.forms import CutForm

MOST_LINES = 500
"""Lines of text on one page."""
_LAST_PAGE = 10_000
_RANGE = re.compile(r"bytes=(\d{1,12})-(\d{1,12})")
MOST_RANGE = 1024 * 1024


@require_safe
def recording(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Play a recording, and read its lines."""
    return _page(request, _recording(request, uid), CutForm())


@require_safe
def cast(request: HttpRequest, uid: UUID) -> HttpResponse | StreamingHttpResponse:
    """The file of a recording, or with one range a part of at most 1 MiB. No browser runs it."""
    found = _recording(request, uid)
    size = files.size(found.uid)
    wanted = _RANGE.fullmatch(request.headers.get("Range", ""))
    if wanted is None:
        name = f"{found.pod.job.name}-{found.pod}-{found.started_at:%Y%m%d-%H%M%S}.cast"
        return FileResponse(files.read(found.uid, 0, size), name, asciicast.MEDIA_TYPE)
    begin, end = int(wanted[1]), min(int(wanted[2]) + 1, size)
    if begin >= end:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    end = min(end, begin + MOST_RANGE)
    data = b"".join(files.read(found.uid, begin, end))
    response = HttpResponse(data, status=206, content_type=asciicast.MEDIA_TYPE)
    response.headers["Content-Encoding"] = "identity"  # a compressed part would be no part of the file
    response.headers["Content-Range"] = f"bytes {begin}-{begin + len(data) - 1}/{size}"
    return response


@require_POST
def cut(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Save a part as a recording of its own."""
    found, form = _recording(request, uid), CutForm(request.POST)
    if form.is_valid():
        begin, end = form.cleaned_data["begin"], form.cleaned_data["end"]
        try:
            made = services.cut_recording(found, begin, end, user=person(request), now=clock.now())
        except Forbidden:
            raise
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved as a recording of its own."))
            return redirect("sharing:recording", made.uid)
    return _page(request, found, form)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a recording."""
    found = _recording(request, uid)
    services.delete_recording(found, user=person(request), now=clock.now())
    messages.success(request, _("Recording deleted."))
    return redirect("jobs:detail", found.pod.job.uid)


def _recording(request: HttpRequest, uid: UUID) -> Recording:
    """Raises NotFound, and Forbidden for those who may not act on the job."""
    found = selectors.recording(uid, person(request))
    job_services.require_right(found.pod.job, person(request))
    return found


def _page(request: HttpRequest, found: Recording, form: CutForm) -> HttpResponse:
    number = request.GET.get("lines", "1")
    page = min(max(int(number), 1), _LAST_PAGE) if number.isdecimal() and len(number) < 6 else 1  # noqa: PLR2004
    texts = asciicast.text_lines(asciicast.events(files.lines(found.uid)))
    lines = list(islice(texts, (page - 1) * MOST_LINES, page * MOST_LINES + 1))
    context = {
        "recording": found,
        "pod": found.pod,
        "job": found.pod.job,
        "size": files.size(found.uid),
        "seconds": found.seconds if found.ended_at else round((clock.now() - found.started_at).total_seconds(), 1),
        "form": form,
        "lines": lines[:MOST_LINES],
        "lines_page": page,
        "has_more": len(lines) > MOST_LINES,
        "nonce": str(request.csp_nonce),  # type: ignore[attr-defined]
    }
    return render(request, "sharing/recording.html", context)
