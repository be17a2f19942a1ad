"""A dashboard of the open sessions: who has them, how long nobody has used them, and what they hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.job_history.labels import duration
from hekla.apps.reports import session_ledger
from hekla.apps.reports.session_ledger import (
    IDLE_MINUTES,
    OpenSession,
    SessionGroupBy,
    SessionPart,
    SessionsQuery,
    SessionsReport,
)
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import queries
from hekla.pages.operations.tabs import tabs

_MOST_ROWS, _MOST_PARTS = 200, 50
_NAMES = ("cluster", "tenant", "person", "tool")
_PARTS: dict[SessionGroupBy, str | Promise] = {
    SessionGroupBy.TOOL: gettext_lazy("Tool"),
    SessionGroupBy.TENANT: gettext_lazy("Tenant"),
    SessionGroupBy.PERSON: gettext_lazy("Person"),
}


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in words."""

    one: OpenSession
    gpus: str
    is_idle: bool
    unused: str


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the open sessions."""
    user = person(request)
    context = session_parts(user, request.GET, clock.now())
    query: SessionsQuery = context["report"].query
    tools = ((tool.value, _tool(tool.value, tool.label)) for tool in Tool)
    context |= {
        "tabs": tabs("operations:sessions"),
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {query.cluster}),
        "tenants": options(((one.slug, one.name) for one in tenancy.visible_to(user)), {query.tenant}),
        "tools": options(tools, {query.tool}),
        "parts_by": options(((one.value, label) for one, label in _PARTS.items()), {query.by.value}),
        "live": queries.live("sessions", _address(query)),
    }
    return render(request, "operations/sessions.html", context)


def session_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    report = session_ledger.sessions(user, _query(parameters), now=now)
    return {
        "report": report,
        "total": report.total,
        "idle_minutes": IDLE_MINUTES,
        "parts": [_part(part, report.query) for part in report.parts[:_MOST_PARTS]],
        "more_parts": max(len(report.parts) - _MOST_PARTS, 0),
        "rows": [_row(one, now) for one in report.rows[:_MOST_ROWS]],
        "more_rows": max(len(report.rows) - _MOST_ROWS, 0),
        "by": _PARTS[report.query.by],
        "file": _address(report.query),
        "everybody": _address(report.query, person=""),
    }


@require_safe
def download(request: HttpRequest) -> HttpResponse:
    """Download the sessions as CSV."""
    now = clock.now()
    report = session_ledger.sessions(person(request), _query(request.GET), now=now)
    text = downloads.csv_text([[downloads.cell(cell) for cell in row] for row in _file_rows(report)])
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, f"sessions-{now:%Y-%m-%d}.csv")


def _query(parameters: QueryDict) -> SessionsQuery:
    names = {name: queries.name_of(parameters, name) for name in _NAMES}
    names["tool"] = names["tool"] if names["tool"] in list(Tool) else ""
    return SessionsQuery(by=queries.choice(SessionGroupBy, parameters.get("by", ""), SessionGroupBy.TOOL), **names)


def _address(query: SessionsQuery, **changes: object) -> str:
    values = {name: getattr(query, name) for name in _NAMES}
    return queries.encoded({**values, "by": query.by.value, **changes})


def _tool(key: str, name: str) -> str:
    """A tool in words: ports have no name of their own."""
    return _("Ports") if key == Tool.PORT else name


def _part(part: SessionPart, query: SessionsQuery) -> tuple[str, str, SessionPart]:
    """The name of a part, the query string of its sessions, and the part."""
    name = _tool(part.key, part.name) if query.by is SessionGroupBy.TOOL else part.name
    return name, _address(query, **{query.by.value: part.key}), part


def _row(one: OpenSession, now: datetime) -> SessionRow:
    unused = one.gpus.unused_since
    words = duration((now - unused).total_seconds()) if unused else ""
    return SessionRow(one, f"{one.gpus.gpus:g}", one.is_idle(now), words)


def _file_rows(report: SessionsReport) -> Iterator[list[object]]:
    """A row for each session, with a head."""
    heads = ("session", "tool", "person", "tenant", "job", "pod", "cluster")
    yield [*heads, "opened_at", "used_at", "idle", "gpus", "gpus_unused_since"]
    for row in report.rows:
        one, pod = row.session, row.session.pod
        names = (one.uid, one.tool, one.owner.username, pod.job.tenant.slug, pod.job.name, str(pod))
        idle = "yes" if row.is_idle(report.at) else "no"
        times = (one.created_at, row.used_at, idle, f"{row.gpus.gpus:g}", row.gpus.unused_since)
        yield [*names, pod.job.cluster.name, *times]
