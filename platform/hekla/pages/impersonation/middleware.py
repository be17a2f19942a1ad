"""While a session impersonates a person, its requests run as that person, on behalf of the admin."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import on_behalf
from hekla.apps.impersonation import selectors, services
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.lib import clock
from hekla.pages.impersonation import reach, sessions


class ImpersonationMiddleware:
    """Comes after all middleware that checks the session's owner: sign-in, second factor, login session."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle the request, and check first that the impersonation is still in force."""
        admin, acting_id = request.user, request.session.get(selectors.KEY)
        if acting_id is None or not isinstance(admin, User):
            return self.get_response(request)
        acting = selectors.in_force(acting_id, admin, now=clock.now())
        if acting is None:
            return _lapsed(request, acting_id, admin)
        request.acting = acting  # type: ignore[attr-defined]
        try:
            with on_behalf(actor_of(admin)):
                return self.get_response(request)
        finally:
            request.user = admin

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        """Refuse routes that are closed to impersonation; run the others as the person."""
        acting: ImpersonationSession | None = getattr(request, "acting", None)
        if acting is None:
            return None
        name = reach.name_of(request.resolver_match)
        if name == reach.SIGN_OUT:
            services.end(acting.pk, by=acting.admin, now=clock.now())
        if name in reach.AS_ONESELF:
            return None
        request.user = acting.person
        return None if reach.is_open(name, request.method or "") else _closed(request)


def _closed(request: HttpRequest) -> HttpResponse:
    refusal = _("This page is closed while you act for another person. Stop impersonating to use it.")
    return render(request, "403.html", {"refusal": refusal}, status=403)


def _lapsed(request: HttpRequest, acting_id: int, admin: User) -> HttpResponse:
    """End an expired impersonation without handling the request, which was meant for the other person.

    HTMX requests only get the instruction to reload the page.
    """
    if request.headers.get("HX-Request"):
        return HttpResponse(status=403, headers={"HX-Refresh": "true"})
    services.end(acting_id, by=admin, now=clock.now())
    sessions.leave(request)
    messages.warning(request, _("You stopped acting for this person: the limit is one hour."))
    return redirect("home")
