"""The dashboards that are measured, by the names of their routes, and the queries with which each is opened."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from hekla.apps.accounts.models import User
from hekla.apps.measures.job_reports import JobGroupBy
from hekla.apps.measures.selectors import GroupBy, Period
from hekla.apps.reports import services as reports
from hekla.apps.reports.models import Report
from hekla.apps.reports.sections import SECTIONS
from hekla.bench.console.pages import Timing, signed_in, timed
from hekla.bench.operations.world import ADMIN, MEMBER
from hekla.domain.reports import ReportPeriod, ReportSpec
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
_EVERY_PERIOD = tuple({"period": period.value} for period in Period)
_EVERY_JOB_GROUP = tuple(
    {"period": period.value, "by": by.value}
    for period in (Period.HOUR, Period.DAY, Period.WEEK, Period.QUARTER)
    for by in JobGroupBy
)
_FILTERED_JOBS = tuple(
    {"period": period, **chosen}
    for period in ("day", "quarter")
    for chosen in (
        {"queue": "queue-0", "by": "person"},
        {"tenant": "team-0", "by": "person"},
        {"person": MEMBER, "by": "kind"},
        {"kind": "training", "by": "queue"},
    )
)
_COUNTED = (
    {"period": "day", "of": "started"},
    {"period": "quarter", "of": "started", "order": "longest"},
    {"period": "quarter", "of": "failed", "part": "exit_code"},
    {"period": "quarter", "of": "waited", "part": "capacity", "queue": "queue-0"},
)
_FIRST_QUEUE = "queue-0"
_COST_GROUPS = tuple(
    {"period": period.value, "by": by.value} for period in (Period.DAY, Period.MONTH, Period.QUARTER) for by in GroupBy
)
_COST_FILTERED = tuple(
    {"period": "quarter", **chosen} for chosen in ({"queue": "queue-0", "by": "person"}, {"tenant": "team-0"})
)
DASHBOARDS: dict[str, tuple[dict[str, str], ...]] = {
    "operations:overview": _EVERY_PERIOD,
    "operations:overview_file": ({"period": "quarter"},),
    "operations:gpu_time": (*_EVERY_GROUP, *_FILTERED),
    "operations:gpu_time_file": ({"period": "quarter"},),
    "operations:holdings": ({"period": "hour", "of": "idle"}, {"period": "month", "of": "failed"}),
    "operations:waste": ({},),
    "operations:cost": (*_COST_GROUPS, *_COST_FILTERED),
    "operations:cost_file": ({"period": "quarter"},),
    "operations:cost_pods": ({"period": "day"}, {"period": "quarter", "tenant": "team-0"}),
    "operations:stalled": ({},),
    "operations:waiting": (*_EVERY_JOB_GROUP, *_FILTERED_JOBS),
    "operations:waiting_file": ({"period": "quarter"},),
    "operations:waiting_now": ({},),
    "operations:failures": (*_EVERY_PERIOD, {"period": "quarter", "by": "person"}, *_FILTERED_JOBS),
    "operations:failures_file": ({"period": "quarter"},),
    "operations:counted": _COUNTED,
    "operations:queues": (*_EVERY_PERIOD, {"period": "quarter", "queue": _FIRST_QUEUE}),
    "operations:queues_file": ({"period": "quarter"},),
    "operations:sessions": ({}, {"by": "person"}),
    "operations:sessions_file": ({},),
    "queues:share": ({},),
    "alerts:list": ({},),
    "reports:list": ({},),
    "reports:detail": ({},),
    "reports:html": ({},),
    "reports:pdf": ({},),
    "api:v1:overview": ({"period": "quarter"},),
    "api:v1:gpu_time": ({"period": "day"}, {"period": "quarter", "by": "person"}),
    "api:v1:cost": ({"period": "quarter", "by": "person"},),
    "api:v1:waiting_of_jobs": ({"period": "quarter", "by": "person"},),
    "api:v1:failures_of_jobs": ({"period": "quarter", "by": "person"},),
    "api:v1:queue_use": ({"period": "quarter"},),
    "api:v1:session_use": ({},),
    "api:v1:stalled_pods": ({},),
    "api:v1:unused_gpus": ({},),
    "api:v1:report_contents": ({},),
    "api:v1:report_file": ({"kind": "pdf"},),
}
"""Of everybody. Pages of other features join here."""
_FOR_MANAGERS: dict[str, tuple[dict[str, str], ...]] = {
    "operations:nodes": ({},),
    "operations:wall": ({},),
    "operations:wall_state": ({},),
    "system:show": ({},),
}
_FOR_MEMBERS = ({"period": "day"}, {"period": "quarter", "by": "person"})
_SHORT_FOR_MEMBERS = ("operations:gpu_time", "operations:waiting", "operations:failures", "operations:cost")
_OF_REPORTS = frozenset(
    {"reports:detail", "reports:html", "reports:pdf", "api:v1:report_contents", "api:v1:report_file"}
)


def measure(repeat: int, now: datetime, say: Callable[[str], None], *, only: Collection[str] = ()) -> Iterator[Timing]:
    """Time every dashboard as the platform's admin, and as a member of one tenant.

    `only`: the names of their routes; empty: all.
    """
    settle_with_pages()  # as in a web process
    settings.API_REQUESTS_A_MINUTE = 10**9
    few = dict.fromkeys(_SHORT_FOR_MEMBERS, _FOR_MEMBERS)
    by_person = {ADMIN: DASHBOARDS | _FOR_MANAGERS, MEMBER: DASHBOARDS | few}
    with clock.simulated(lambda: now):
        for name, pages in by_person.items():
            user = User.objects.get(username=name)
            client, report = signed_in(user), _report(user, now)
            who = "admin" if name == ADMIN else "member"
            for route, query in [(one, query) for one in pages for query in pages[one] if not only or one in only]:
                address = f"{_address(route, report)}?{urlencode(query)}"
                what = " ".join((route.removeprefix("operations:"), *query.values()))
                timing = timed(what, who, [address], client.get, repeat)
                say(f"{what}, {who}: {timing.p50} ms, {timing.queries} queries")
                yield timing


def _report(user: User, now: datetime) -> Report:
    """A report of a month with all sections. An earlier measurement of the same data has left one."""
    name = f"Month of {user.username}"
    facts = {"name": name, "period": ReportPeriod.MONTH.value, "sections": list(SECTIONS)}
    known = Report.objects.filter(owner=user, name=name).first()
    return known or reports.create(spec=ReportSpec.parse(facts), user=user, now=now)


def _address(route: str, report: Report) -> str:
    if route in _OF_REPORTS:
        return reverse(route, args=[report.uid])
    return reverse(route, args=[_FIRST_QUEUE] if route == "queues:share" else [])
