"""The time zone of a person: the chosen one, else that of the browser, else that of the console."""

from collections.abc import Callable
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from hekla.apps.accounts.models import User

COOKIE = "hekla_time_zone"
"""The zone of the browser, written by `js/time.js`."""
_LONGEST = 64


class TimeZoneMiddleware:
    """Renders the times of a page in the person's zone; REST answers in UTC, whoever asks and however they signed in.

    Comes after all middleware that changes the person.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith("/api/"):
            return self.get_response(request)
        chosen = request.user.time_zone if isinstance(request.user, User) else ""
        zone = known(chosen) or known(request.COOKIES.get(COOKIE, ""))
        if zone is None:
            return self.get_response(request)
        with timezone.override(zone):
            return self.get_response(request)


@lru_cache(maxsize=1024)
def known(name: str) -> ZoneInfo | None:
    """The zone of that name; None if there is none."""
    if not name or len(name) > _LONGEST:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # no such zone, a folder of zones, a path that leads elsewhere
        return None


@lru_cache(maxsize=1)
def names() -> list[str]:
    """The zones that people choose from: those of cities, and UTC."""
    found = (name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))
    return ["UTC", *sorted(found)]
