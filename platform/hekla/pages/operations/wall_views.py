"""The wall screen: large figures that take turns, without a rail. Only people who see everything may open it."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.roles import Permission
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.operations import overview, queries, wall

_SECONDS, _FEWEST, _MOST = 15, 5, 600
_MOST_DIGITS = 4


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the whole screen. In the address: `seconds` for each view, and `cluster`."""
    context = _context(request)
    context["state"] = queries.encoded({"cluster": context["cluster"]})
    return render(request, "operations/wall.html", context | {"seconds": _seconds(request.GET.get("seconds", ""))})


@require_safe
def state(request: HttpRequest) -> HttpResponse:
    """The views as they are now; the script of the page fetches them."""
    return render(request, "operations/_wall_views.html", _context(request))


def _context(request: HttpRequest) -> dict[str, Any]:
    user, now = person(request), clock.now()
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        raise NotFound(_("Unknown page."))
    cluster = queries.name_of(request.GET, "cluster")
    found = wall.wall(user, cluster, now=now)
    return {
        "wall": found,
        "cluster": cluster,
        "glance": [(overview.NAMES[what], overview.words(what, value)) for what, value in found.glance.items()],
        "longest": wall.ago(found.oldest, now),
        "queue_lines": [(line, wall.ago(line.oldest, now)) for line in found.queues],
        "failures": [(job, wall.ago(job.finished_at, now)) for job in found.failures],
    }


def _seconds(text: str) -> int:
    """The seconds for each view, within bounds."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return min(max(int(text), _FEWEST), _MOST) if is_number else _SECONDS
