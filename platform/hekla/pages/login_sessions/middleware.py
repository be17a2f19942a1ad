"""Records the browsers in which people are signed in, at most once a minute. The session stores the last record."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from hekla.apps.accounts.models import User
from hekla.apps.login_sessions import services
from hekla.lib import clock
from hekla.pages.login_sessions import browsers

_SESSION_KEY = "visit"
_EVERY_SECONDS = 60


class LoginSessionMiddleware:
    """Runs after the response, because the view may sign the person in or change the session's key."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle the request, then record the browser."""
        answer = self.get_response(request)
        if isinstance(request.user, User) and request.session.session_key:
            _note(request, request.user, request.session.session_key)
        return answer


def _note(request: HttpRequest, user: User, key: str) -> None:
    noted, now = request.session.get(_SESSION_KEY, {}), clock.now()
    if noted.get("key") == key and now.timestamp() - noted["at"] < _EVERY_SECONDS:
        return
    visit = services.note(
        noted.get("id"),
        user,
        session_key=key,
        browser=browsers.name(request.headers.get("user-agent", "")),
        address=request.META.get("REMOTE_ADDR") or "",
        now=now,
    )
    request.session[_SESSION_KEY] = {"id": visit, "key": key, "at": now.timestamp()}
