"""A part of the home page that loads after it: the pods of the last 24 hours as a curve, drawn on the server.

The counts are those of all tenants, as the lengths of queues are. They are read at most once a minute.
"""

from datetime import datetime, timedelta

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import selectors as jobs
from hekla.lib import clock
from hekla.pages.queues import figures

_STEP, _STEPS = timedelta(minutes=15), 96
_CACHE, _CACHE_SECONDS = "home-day-with-most", 60
_WIDTH, _HEIGHT = 960, 100


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The part of the home page."""
    counts, present = cache.get(_CACHE) or _counts(clock.now())
    cache.add(_CACHE, (counts, present), _CACHE_SECONDS)
    most = max(counts)
    has_simulated = any(cluster.is_simulated for cluster in _clusters())
    facts = {
        "has_simulated": has_simulated,
        "most": most,
        "now": present,
        "path": _path(counts, most),
        "width": _WIDTH,
        "height": _HEIGHT,
    }
    return render(request, "_home_day.html", facts)


def _clusters() -> list[Cluster]:
    """Those whose pods count."""
    return [cluster for cluster in clusters.all_clusters() if not figures.is_of_demonstration(cluster)]


def _counts(now: datetime) -> tuple[list[int], int]:
    """The largest number of pods on nodes in each quarter of an hour, and the present one."""
    here = [cluster.pk for cluster in _clusters()]
    since = now - _STEPS * _STEP
    changes = {change.at: change for change in jobs.placed_pods_over_time(here, since=since, step=_STEP)}
    counts, last = [], 0
    for number in range(_STEPS):
        change = changes.get(since + number * _STEP)
        counts.append(max(last, change.most) if change else last)
        last = change.last if change else last
    return counts, last


def _path(counts: list[int], most: int) -> str:
    """The curve as a filled path with steps."""
    width, top = _WIDTH / len(counts), max(most, 1)
    steps = (f"V{_HEIGHT - _HEIGHT * count / top:g}H{(at + 1) * width:g}" for at, count in enumerate(counts))
    return f"M0 {_HEIGHT}{''.join(steps)}V{_HEIGHT}Z"
