"""The tools of a pod: its ports in the browser, each on an origin of its own (`live.proxy`)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Pod
from hekla.apps.workbench import entry, selectors, services
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.domain.errors import Forbidden, HeklaError, NotFound, Refused
from hekla.domain.tools import STARTED_TOOLS, Tool
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.workbench import activity, people, sharing_host
from hekla.pages.workbench.forms import PortForm
from hekla.workbench import tools as starting

_GO = "go"
"""In the address of a session: open it as soon as it is ready."""
_WAIT_SECONDS = 1.5
_waiting = BoundedSemaphore(3)
"""A page that waits holds a thread and one of the process's few connections of the database. Others do not wait."""


@require_http_methods(["GET", "HEAD", "POST"])
def tools(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """The tools of a pod and its open sessions. POST opens a port. A refusal shows the typed values."""
    pod = jobs.pod(pod_id, person(request))
    if pod.job.uid != uid:
        raise NotFound(_("Unknown pod."))
    job_services.require_right(pod.job, person(request))
    if request.method == "POST" and request.POST.get("tool") in STARTED_TOOLS:
        return _open_tool(pod, Tool(request.POST["tool"]), request)
    form = PortForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            port, user = form.cleaned_data["port"], person(request)
            session, _is_new = services.open_session(pod.pk, Tool.PORT, port, user=user, now=clock.now())
        except Forbidden:
            raise
        except HeklaError as error:
            attach(form, error)
        else:
            return _enter(request, session) if sharing_host.has_agreed(request) else _to_page(request, session)
    return render(request, "workbench/tools.html", _context(pod, request, form))


@require_safe
def session(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One session: how it is, and how to open it. While its tool starts, the page looks again by itself.

    It waits here for a while: each look in the page takes CPU from the start of the tool.
    """
    found = activity.find(request, uid)
    with _wait(is_useful=_GO in request.GET and bool(found.port)) as seconds:
        starting.look(found, now=clock.now(), seconds=seconds)
    context = {
        "session": found,
        "pod": found.pod,
        "job": found.pod.job,
        "is_own": found.owner_id == person(request).pk,
        "goes_on": _GO in request.GET,
        "verdict": activity.summary(found).verdict,
        "limit_minutes": starting.START_LIMIT.seconds // 60,
        **sharing_host.part(found, request),
        **people.part(found),
    }
    response = render(request, "workbench/session.html", context)
    if found.state is SessionState.STARTING:
        response.headers["Refresh"] = "0" if seconds else "1"
    return response


@contextmanager
def _wait(*, is_useful: bool) -> Iterator[float]:
    """How many seconds a page may wait for a tool; 0 if enough of them wait."""
    waits = is_useful and _waiting.acquire(blocking=False)
    try:
        yield _WAIT_SECONDS if waits else 0.0
    finally:
        if waits:
            _waiting.release()


@require_POST
def enter(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Open one's own session: its origin, with a ticket."""
    found = activity.find(request, uid)
    if found.owner_id != person(request).pk:
        raise Forbidden(_("Only the person who opened a session can enter it. Open one of your own."))
    if found.state is not SessionState.READY or not sharing_host.has_agreed(request):
        return _to_page(request, found)
    return _enter(request, found)


@require_POST
def end(request: HttpRequest, uid: UUID) -> HttpResponse:
    """End a session, also one of another person."""
    found = activity.find(request, uid)
    starting.stop(found)
    services.end_session(found, user=person(request), now=clock.now())
    return redirect("workbench:tools", found.pod.job.uid, found.pod_id)


def _open_tool(pod: Pod, tool: Tool, request: HttpRequest) -> HttpResponse:
    """Start a tool in the pod, unless the person has it there already. Its page follows the start."""
    found, is_new = services.open_session(pod.pk, tool, user=person(request), now=clock.now())
    if is_new:
        with suppress(Refused):  # the page of the session says why
            starting.start(found, now=clock.now())
    return redirect(f"{reverse('workbench:session', args=[found.uid])}?{_GO}")


def _to_page(request: HttpRequest, found: ToolSession) -> HttpResponse:
    """The page of a session, which says why it is not open yet."""
    page = reverse("workbench:session", args=[found.uid])
    return HttpResponse(headers={"HX-Redirect": page}) if request.headers.get("HX-Request") else redirect(page)


def _enter(request: HttpRequest, found: ToolSession) -> HttpResponse:
    """A page that leads to the session at once. No redirect: forms of the console lead to the console only."""
    ticket = entry.issue_ticket(found, login=request.session.session_key, token=None)
    url = entry.entry_url(found, ticket, request.get_host())
    context = {"session": found, "pod": found.pod, "job": found.pod.job, "url": url}
    response = render(request, "workbench/enter.html", context)
    if request.headers.get("HX-Request"):
        response.headers["HX-Redirect"] = url
    else:
        response.headers["Refresh"] = f"0;url={url}"
    return response


def _context(pod: Pod, request: HttpRequest, form: PortForm) -> dict[str, object]:
    opened = [one for one in selectors.of_job(pod.job) if one.pod_id == pod.pk]
    return {
        "pod": pod,
        "job": pod.job,
        "no_session": services.no_session(pod),
        "ports": sorted(spec_of(pod.job).task(pod.task).ports.items()),
        "sessions": opened,
        "tools": STARTED_TOOLS,
        "me": person(request).pk,
        "form": form,
    }
