"""Requires a second factor of the people who must have one: until they add it, other pages redirect to its set-up."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from hekla.apps.accounts.models import User
from hekla.apps.signin import rule

_OPEN = {"favicon", "set_language"}
_SETTING_UP = {"second_factor", "begin_factor", "confirm_factor", "add_key"}
_COMING_IN = {"prove", "sign_out", "sign_in", "use_link", "second_step"}
_OPEN |= {f"accounts:{name}" for name in _SETTING_UP | _COMING_IN}


class SecondFactorRule:
    """Covers pages. Views of the API check the rule themselves, for tokens as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; the check needs the resolved URL."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: object, *_arguments: object) -> HttpResponse | None:
        """Redirect people who lack a required second factor to its page."""
        user = request.user
        if not isinstance(user, User) or _checks_itself(view):
            return None
        if request.resolver_match is None or request.resolver_match.view_name in _OPEN:
            return None
        return redirect("accounts:second_factor") if rule.without_required_factor([user.pk]) else None


def _checks_itself(view: object) -> bool:
    """Whether it is a view of the API. Only such views have a `cls`, so pages do not load the API."""
    kind = getattr(view, "cls", None)
    if kind is None:
        return False
    from hekla.api.views import ApiView  # noqa: PLC0415

    return issubclass(kind, ApiView)
