"""Pages of shared terminals and sessions: inviting, one's own invitations, and what a job shares."""

from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import closing, selectors, services
from hekla.apps.sharing.models import Guest, GuestState, OpenTerminal
from hekla.apps.sharing.roles import LABELS
from hekla.apps.sharing.selectors import Target
from hekla.apps.workbench import entry
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.domain.errors import Forbidden, HeklaError, Refused
from hekla.domain.sharing import GuestRole
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.sharing.forms import GuestForm
from hekla.pages.workbench import people, sharing_host
from hekla.workbench import tools


@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """The open invitations of the person: to accept, to decline, or to open."""
    now = clock.now()
    rows = [_own_row(one, now) for one in selectors.invitations_of(person(request), now=now)]
    return render(request, "sharing/mine.html", {"guests": rows})


@require_POST
def accept(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Accept one's own invitation."""
    try:
        services.accept(selectors.guest(uid, person(request)), user=person(request), now=clock.now())
    except Refused as refusal:
        messages.warning(request, refusal.message)
    return redirect("sharing:mine")


@require_POST
def decline(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Decline one's own invitation, or give it back."""
    services.decline(selectors.guest(uid, person(request)), user=person(request), now=clock.now())
    return redirect("sharing:mine")


@require_POST
def enter(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Open what an accepted invitation is for: the page of the terminal, or the session with an own ticket."""
    guest = selectors.guest(uid, person(request))
    services.require_own(guest, person(request))
    if guest.state(clock.now()) is not GuestState.ACCEPTED:
        messages.warning(request, _("Accept the invitation first. One that has ended opens nothing."))
        return redirect("sharing:mine")
    if reason := closing.closed_reason(guest, now=clock.now()):
        messages.warning(request, reason)
        return redirect("sharing:mine")
    if guest.terminal is not None:
        return redirect(guest.page)
    session = guest.session
    assert session is not None  # noqa: S101  (a guest has one of both)
    session.pod = guest.pod
    if session.state is not SessionState.READY:
        messages.warning(request, _("The session is not ready yet. Try again in a moment."))
        return redirect("sharing:mine")
    if not sharing_host.has_agreed(request):
        context = {"session": session, "guest": guest, **sharing_host.part(session, request)}
        return render(request, "sharing/before.html", context)
    login, me = request.session.session_key, person(request).pk
    ticket = entry.issue_ticket(session, login=login, token=None, person=me, guest=guest.pk)
    url = entry.entry_url(session, ticket, request.get_host())
    response = render(request, "sharing/enter.html", {"session": session, "url": url})
    response.headers["Refresh"] = f"0;url={url}"
    return response


@require_POST
def end(request: HttpRequest, uid: UUID) -> HttpResponse:
    """End the session of another person, as an invited co-owner."""
    guest = selectors.guest(uid, person(request))
    services.end_shared_session(guest, user=person(request), now=clock.now())
    if guest.session is not None:
        guest.session.pod = guest.pod
        tools.stop(guest.session)
    messages.success(request, _("The session has ended."))
    return redirect("sharing:mine")


@require_POST
def revoke(request: HttpRequest, uid: UUID) -> HttpResponse:
    """End the invitation of another person. What they have open closes within seconds."""
    guest = selectors.guest(uid, person(request))
    services.revoke(guest, user=person(request), now=clock.now())
    messages.success(request, _("The invitation has ended."))
    return redirect(_place(guest.target))


@require_http_methods(["GET", "HEAD", "POST"])
def terminal(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Guest a terminal: who is invited, and a form for one more."""
    return _share(request, selectors.terminal(uid, person(request)))


@require_http_methods(["GET", "HEAD", "POST"])
def session(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Guest a session with a tool or port."""
    return _share(request, selectors.session_of(uid, person(request)))


@require_safe
def of_job(request: HttpRequest, uid: UUID) -> HttpResponse:
    """A part of the job's page: its recordings, and who is invited to what."""
    job = jobs.get(uid, person(request))
    job_services.require_right(job, person(request))
    now = clock.now()
    guests = [_row(one, now) for one in selectors.guests_of_job(job, now=now)]
    context = {"job": job, "guests": guests, "recordings": selectors.recordings_of(job), "fork": selectors.fork_of(job)}
    return render(request, "sharing/_of_job.html", context)


def _share(request: HttpRequest, target: Target) -> HttpResponse:
    user, now = person(request), clock.now()
    may_invite = selectors.may_invite(target, user, now=now)
    if not may_invite:
        job_services.require_right(target.pod.job, user)
    form = GuestForm(request.POST or None, is_tool=not isinstance(target, OpenTerminal))
    if request.method == "POST" and not may_invite:
        raise Forbidden(_("Only the person who opened it, and co-owners, can invite others."))
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            role = GuestRole(values["role"])
            services.invite(target, values["person"], role, hours=values["hours"], user=user, now=now)
        except Forbidden:
            raise
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Invited. It opens once the person accepts."))
            return redirect(_place(target))
    guests = [_row(one, now) for one in selectors.guests_of(target, now=now)]
    context = {"target": target, "pod": target.pod, "job": target.pod.job, "form": form, "guests": guests}
    is_open = target.ended_at is None and not target.pod.is_final
    facts = {"may_invite": may_invite, "is_open": is_open, "is_terminal": isinstance(target, OpenTerminal)}
    here = people.part(target) if isinstance(target, ToolSession) else {}
    return render(request, "sharing/share.html", context | facts | here)


def _place(target: Target) -> str:
    return reverse(f"sharing:{'terminal' if isinstance(target, OpenTerminal) else 'session'}", args=[target.uid])


def _own_row(guest: Guest, now: datetime) -> dict[str, object]:
    """An invitation of the reader. `here`: who has the session open, once it is accepted; else None.

    `closed`: why it has no effect any more.
    """
    row = _row(guest, now) | {"closed": closing.closed_reason(guest, now=now)}
    if guest.session is not None and guest.accepted_at is not None and not row["closed"]:
        guest.session.pod = guest.pod
        row["here"] = people.part(guest.session)
    return row


def _row(guest: Guest, now: object) -> dict[str, object]:
    return {
        "guest": guest,
        "role": LABELS[GuestRole(guest.role)],
        "is_accepted": guest.accepted_at is not None,
        "label": guest.target.label,
        "owner": guest.target.owner,
        "place": _place(guest.target),
        "now": now,
    }
