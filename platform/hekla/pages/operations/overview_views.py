"""The overview of operations: the first tab."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.measures import labels
from hekla.apps.measures.selectors import MeasuresQuery, Period
from hekla.apps.reports.overview import overview
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import figures, queries
from hekla.pages.operations import overview as tiles
from hekla.pages.operations.tabs import tabs


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the figures that a manager looks at first."""
    query = _query(request.GET)
    context = overview_parts(person(request), request.GET, clock.now()) | {
        "tabs": tabs("operations:overview"),
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {query.cluster}),
        "periods": [
            (str(label), queries.overview_address(query, period=one.value), one is query.period)
            for one, label in labels.PERIODS.items()
        ],
        "live": queries.live("overview", queries.overview_address(query), query.until),
    }
    return render(request, "operations/overview.html", context)


def overview_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    query = _query(parameters)
    found = overview(user, query, now=now)
    report = found.gpu_time
    after = report.end + (report.end - report.begin)
    later = queries.text(after) if after < now else ""
    return {
        "report": report,
        "tiles": tiles.tiles(found),
        "figure": figures.figure(report),
        "has_figure": any(report.totals.values()),
        "file": queries.overview_address(query),
        "before": queries.overview_address(query, until=queries.text(report.begin)),
        "after": queries.overview_address(query, until=later) if query.until else "",
        "until": queries.text(query.until) if query.until else "",
    }


@require_safe
def download(request: HttpRequest) -> HttpResponse:
    """Download the figures as CSV."""
    found = overview(person(request), _query(request.GET), now=clock.now())
    text = downloads.csv_text([[downloads.cell(cell) for cell in row] for row in tiles.file_rows(found)])
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, f"overview-{found.gpu_time.begin:%Y-%m-%d}.csv")


def _query(parameters: QueryDict) -> MeasuresQuery:
    period = queries.choice(Period, parameters.get("period", ""), Period.DAY)
    until = queries.instant(parameters.get("until", ""))
    return MeasuresQuery(period, until, queries.name_of(parameters, "cluster"))
