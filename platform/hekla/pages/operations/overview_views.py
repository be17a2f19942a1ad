"""The overview of operations: the first tab."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.measures import labels
from hekla.apps.measures.selectors import MeasuresQuery, Period
from hekla.apps.reports import selectors, services
from hekla.apps.reports.overview import OverviewFigure, overview
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
    query, user = _query(request.GET), person(request)
    context = overview_parts(user, request.GET, clock.now()) | {
        "tabs": tabs("operations:overview"),
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {query.cluster}),
        "periods": [
            (str(label), queries.overview_address(query, period=one.value), one is query.period)
            for one, label in labels.PERIODS.items()
        ],
        "arranged": tiles.arranged(selectors.overview_figures(user)),
        "is_arranging": "arrange" in request.GET,
        "focus": request.GET.get("arrange", ""),
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
        "tiles": tiles.tiles(found, selectors.overview_figures(user)),
        "figure": figures.figure(report),
        "has_figure": any(report.totals.values()),
        "file": queries.overview_address(query),
        "before": queries.overview_address(query, until=queries.text(report.begin)),
        "after": queries.overview_address(query, until=later) if query.until else "",
        "until": queries.text(query.until) if query.until else "",
    }


@require_POST
def arrange(request: HttpRequest) -> HttpResponse:
    """Save which tiles the person sees and in which order; or move one, or go back to the usual ones."""
    order = [OverviewFigure(name) for name in request.POST.getlist("figure") if name in list(OverviewFigure)]
    visible = set(request.POST.getlist("visible"))
    focus = "save"
    for step, field in ((-1, "up"), (1, "down")):
        name = request.POST.get(field, "")
        if name in order:
            place = order.index(OverviewFigure(name))
            order.insert(max(place + step, 0), order.pop(place))
            focus = f"{field}-{name}"
    chosen = [] if "reset" in request.POST else [what for what in order if what in visible]
    services.arrange_overview(chosen, user=person(request), now=clock.now())
    return redirect(f"{reverse('operations:overview')}?arrange={focus}#arrange")


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
