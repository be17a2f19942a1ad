"""The dashboards that are measured, by the names of their routes, and the queries with which each is opened."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse

from hekla.apps.accounts.models import User
from hekla.apps.measures.selectors import GroupBy, Period
from hekla.bench.console.pages import Timing, signed_in, timed
from hekla.bench.operations.world import ADMIN, MEMBER
from hekla.launcher.gc_tuning import settle_with_pages
from hekla.lib import clock

_EVERY_GROUP = tuple({"period": period.value, "by": by.value} for period in Period for by in GroupBy)
_FILTERED = tuple(
    {"period": period, **chosen}
    for period in ("hour", "month")
    for chosen in (
        {"queue": "queue-0", "by": "person"},
        {"tenant": "team-0", "by": "person"},
        {"model": "NVIDIA-A100-SXM4-80GB", "by": "tenant"},
    )
)
DASHBOARDS: dict[str, tuple[dict[str, str], ...]] = {
    "operations:gpu_time": (*_EVERY_GROUP, *_FILTERED),
    "operations:gpu_time_file": ({"period": "quarter"},),
    "operations:holdings": ({"period": "hour", "of": "idle"}, {"period": "month", "of": "failed"}),
    "operations:waste": ({},),
}
"""Pages of other features join here."""
_FOR_MEMBERS = ({"period": "day"}, {"period": "quarter", "by": "person"})


def measure(repeat: int, now: datetime, say: Callable[[str], None], *, only: Collection[str] = ()) -> Iterator[Timing]:
    """Time every dashboard as the platform's admin, and some as a member of one tenant.

    `only`: the names of their routes; empty: all.
    """
    settle_with_pages()  # as in a web process
    by_person = {ADMIN: DASHBOARDS, MEMBER: {**DASHBOARDS, "operations:gpu_time": _FOR_MEMBERS}}
    with clock.simulated(lambda: now):
        for name, pages in by_person.items():
            client = signed_in(User.objects.get(username=name))
            for route, query in [(one, query) for one in pages for query in pages[one] if not only or one in only]:
                address = f"{reverse(route)}?{urlencode(query)}"
                what = " ".join((route.partition(":")[2], *query.values()))
                who = "admin" if name == ADMIN else "member"
                timing = timed(what, who, [address], client.get, repeat)
                say(f"{what}, {who}: {timing.p50} ms, {timing.queries} queries")
                yield timing
