"""The rule that some people must have a second factor: until they have, they find the page that makes one."""

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
    """Looks at sessions only: programs come with tokens, which are made by somebody who is signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Nothing to do before the address is known."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        """Send those to the page that lack what they must have."""
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
