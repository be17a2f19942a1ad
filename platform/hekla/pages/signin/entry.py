"""The sign-in flow: after a password, link or invitation, either sign in, or ask for the second factor first.

Until then the person is not signed in: the session only remembers the pending sign-in, for five minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, resolve_url
from django.urls import reverse

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.people_by_id import BACKEND
from hekla.apps.signin import selectors
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person

HALF_WAY = timedelta(minutes=5)
PROOF_LASTS = timedelta(minutes=10)
_HALF, _PROVED = "half_signed_in", "proved_at"
_More = ParamSpec("_More")


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A pending sign-in: the first factor is proved, the second is not."""

    user: User
    method: str
    target: str


def enter(request: HttpRequest, user: User, *, method: str, target: str = "home") -> HttpResponseRedirect:
    """Sign in a person who came by `method`, or ask for the second factor first."""
    if not selectors.has_second_factor(user):
        return complete(request, user, method=method, target=target)
    request.session.cycle_key()
    facts = {"user": user.pk, "method": method, "target": resolve_url(target), "at": clock.now().timestamp()}
    request.session[_HALF] = facts
    return redirect("accounts:second_step")


def complete(request: HttpRequest, user: User, *, method: str, target: str = "home") -> HttpResponseRedirect:
    """Sign in, replacing any earlier login, and record the method in the event log."""
    request.session.pop(_HALF, None)
    login(request, user, backend=BACKEND)
    note_proof(request)
    address = request.META.get("REMOTE_ADDR") or ""
    account_services.note_sign_in(user, method=method, address=address, now=clock.now())
    return redirect(target)


def half_way(request: HttpRequest) -> PendingSignIn | None:
    """The pending sign-in of this browser, unless it is older than five minutes."""
    facts = request.session.get(_HALF)
    if not facts or clock.now().timestamp() - facts["at"] > HALF_WAY.total_seconds():
        return None
    try:
        return PendingSignIn(accounts.active(facts["user"]), facts["method"], facts["target"])
    except NotFound:
        return None


def note_proof(request: HttpRequest) -> None:
    """Record that the person has just proved their identity."""
    request.session[_PROVED] = clock.now().timestamp()


def freshly_proved(
    view: Callable[Concatenate[HttpRequest, _More], HttpResponse], *, page: str = "accounts:second_factor"
) -> Callable[Concatenate[HttpRequest, _More], HttpResponse]:
    """Decorator: ask for the second factor or password unless it was proved in the last ten minutes.

    It protects actions for which an unlocked screen must not be enough. `page`: the page with the button of a
    POST, with the same arguments. The person is back there after the proof.
    """

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: _More.args, **kwargs: _More.kwargs) -> HttpResponse:
        age = clock.now().timestamp() - request.session.get(_PROVED, 0)
        if age <= PROOF_LASTS.total_seconds():
            return view(request, *args, **kwargs)
        person(request)
        origin = request.get_full_path() if request.method == "GET" else reverse(page, args=args)
        return redirect(f"{reverse('accounts:prove')}?{urlencode({'next': origin})}")

    return guarded
