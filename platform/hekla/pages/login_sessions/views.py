"""Pages of a person's login sessions."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.roles import Permission
from hekla.apps.login_sessions import selectors, services
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.login_sessions.tables import SEARCH, SessionsTable


@require_safe
def visits(request: HttpRequest) -> HttpResponse:
    """List the person's login sessions, with the current one marked."""
    found = selectors.of(person(request), now=clock.now())
    here = request.session.session_key
    sessions = listing(request, SessionsTable, found, SEARCH, facts={"here": here})
    return render(request, "login_sessions/list.html", {"visits": sessions, "here": here})


@require_POST
def end(request: HttpRequest, visit_id: int) -> HttpResponse:
    """End one of the person's login sessions."""
    services.end(person(request), visit_id, now=clock.now())
    messages.success(request, _("Session ended."))
    return redirect("accounts:visits")


@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    """End the person's other login sessions."""
    ended = services.end_others(person(request), request.session.session_key or "", now=clock.now())
    messages.success(request, _describe_ended(ended))
    return redirect("accounts:visits")


@require_POST
def end_all(request: HttpRequest, user_id: int) -> HttpResponse:
    """End all login sessions of a person, as a platform admin."""
    account_services.require(person(request), Permission.MANAGE_PEOPLE)
    user = get_object_or_404(accounts.everybody(), pk=user_id)
    messages.success(request, _describe_ended(services.end_all(user, by=person(request), now=clock.now())))
    return redirect("accounts:edit", user_id)


def _describe_ended(ended: int) -> str:
    return ngettext("Signed out of %(count)d session.", "Signed out of %(count)d sessions.", ended) % {"count": ended}
