"""What queues deserved, held, waited for, borrowed and lent over time."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.job_history import quota_messages
from hekla.apps.measures import labels, queue_selectors
from hekla.apps.measures.queue_selectors import QueueUseQuery, QueueUseReport
from hekla.apps.queues import selectors as queues
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import queries, queue_figures, queue_queries
from hekla.pages.operations.tabs import tabs

_MOST_ROWS = 100


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the GPUs of queues in a period."""
    now, user = clock.now(), person(request)
    context = queue_parts(user, request.GET, now)
    query = context["report"].query
    context |= {"tabs": tabs("operations:queues"), **_choices(user, query)}
    context["live"] = queries.live("queues", queue_queries.address(query), query.until)
    return render(request, "operations/queues.html", context)


def queue_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    report = queue_selectors.queue_use(user, queue_queries.parse(parameters), now=now)
    rows = queue_figures.use_rows(report)
    starved = queue_figures.starved_rows(report.starved[:_MOST_ROWS])
    return {
        "report": report,
        "figure": queue_figures.figure(report),
        "rows": rows[:_MOST_ROWS],
        "more_rows": max(len(rows) - _MOST_ROWS, 0),
        "totals": queue_figures.total_row(report),
        "starved": starved,
        "more_starved": len(report.starved) - len(starved),
        **_links(report, now),
    }


@require_safe
def download(request: HttpRequest) -> HttpResponse:
    """Download the figure as CSV: mean numbers of GPUs by time and queue."""
    report = queue_selectors.queue_use(person(request), queue_queries.parse(request.GET), now=clock.now())
    text = downloads.csv_text([[downloads.cell(cell) for cell in row] for row in queue_figures.file_rows(report)])
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, f"queues-{report.begin:%Y-%m-%d}.csv")


def _choices(user: User, query: QueueUseQuery) -> dict[str, object]:
    """The choices of the filters."""
    resources = queue_selectors.resources(user)
    return {
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {query.cluster}),
        "queues": options(((one.name, one.name) for one in queues.visible_to(user)), {query.queue}),
        "resources": options(((one, quota_messages.resource(one)) for one in resources), {query.resource}),
        "periods": [
            (str(label), queue_queries.address(query, period=one.value), one is query.period)
            for one, label in labels.PERIODS.items()
        ],
    }


def _links(report: QueueUseReport, now: datetime) -> dict[str, object]:
    """The addresses of the file, and of the periods before and after."""
    query = report.query
    after = report.end + (report.end - report.begin)
    later = queries.text(after) if after < now else ""
    return {
        "file": queue_queries.address(query),
        "before": queue_queries.address(query, until=queries.text(report.begin)),
        "after": queue_queries.address(query, until=later) if query.until else "",
        "until": queries.text(query.until) if query.until else "",
    }
