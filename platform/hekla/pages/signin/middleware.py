"""Requires a second factor of the people who must have one: until they add it, other pages redirect to its set-up."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from hekla.apps.accounts.models import User
from hekla.apps.signin import selectors

_OPEN = {"health", "favicon", "set_language"}
_SETTING_UP = {"second_factor", "begin_factor", "confirm_factor", "add_key"}
_COMING_IN = {"prove", "sign_out", "sign_in", "use_link", "second_step"}
_OPEN |= {f"accounts:{name}" for name in _SETTING_UP | _COMING_IN}


class SecondFactorRule:
    """Covers sessions only. API tokens are exempt, because only a signed-in person can create them."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; the check needs the resolved URL."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        """Redirect people who lack a required second factor to its page."""
        user = request.user
        if not isinstance(user, User) or not selectors.must_have(user):
            return None
        if (
            request.resolver_match is None
            or request.resolver_match.view_name in _OPEN
            or selectors.has_second_factor(user)
        ):
            return None
        return redirect("accounts:second_factor")
