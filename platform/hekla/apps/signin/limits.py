"""Rate limits by IP address against guessing on public pages, in addition to those of `axes` by name and address.

Attempts with second factors are counted separately, by account and in the database (`services`).
"""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps

from axes.helpers import get_cool_off
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from hekla.apps import limits
from hekla.lib import clock

_WINDOW_SECONDS = 60
_View = Callable[..., HttpResponseBase]


def counted_by_address(view: _View) -> _View:
    """Limit a view to `TRIES_A_MINUTE` requests per minute and address. Beyond that, a page says when to retry."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        key = f"{view.__name__}:{request.META.get('REMOTE_ADDR', '')}"
        if limits.allows(key, most=settings.TRIES_A_MINUTE, seconds=_WINDOW_SECONDS):
            return view(request, *args, **kwargs)
        return too_many(request, limits.until_next(_WINDOW_SECONDS), "address")

    return guarded


def locked_out(request: HttpRequest, _credentials: object = None, *_more: object, **_facts: object) -> HttpResponse:
    """The response of `axes` after too many wrong passwords; each further attempt restarts the waiting time."""
    return too_many(request, get_cool_off() or timedelta(), "password")


def too_many(request: HttpRequest, wait: timedelta, why: str) -> HttpResponse:
    """The page that says when to try again. `why`: address, password or name."""
    seconds = int(wait.total_seconds()) + 1
    context = {"why": why, "again_at": clock.now() + timedelta(seconds=seconds)}
    answer = render(request, "signin/too_many.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    return answer
