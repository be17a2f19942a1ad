"""What held resources cost: a period with the one before, what the month will cost, and the pods behind it."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.measures import cost_selectors, labels, pod_costs
from hekla.apps.measures.cost_selectors import COST_PERIODS
from hekla.apps.measures.selectors import GpuTimeQuery, Period
from hekla.apps.prices import selectors as prices
from hekla.domain.prices import in_words
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.operations import cost_figures, queries
from hekla.pages.operations.tabs import tabs
from hekla.pages.operations.views import choices, links

_MOST_PARTS = 50


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the costs of a period."""
    now, query, user = clock.now(), _query(request), person(request)
    report = cost_selectors.cost(user, query, now=now)
    forecast = cost_selectors.forecast_of(user, query, now=now)
    context = {
        "report": report,
        "tabs": tabs("operations:cost"),
        "figure": cost_figures.figure(report),
        "total": in_words(report.total, report.currency),
        "total_before": in_words(sum(report.before.values()), report.currency),
        "forecast": forecast and cost_figures.forecast_words(forecast, report.currency),
        "month": forecast and forecast.begin,
        "classes": cost_figures.class_rows(report),
        "parts": cost_figures.part_rows(report.parts[:_MOST_PARTS], report),
        "more_parts": max(len(report.parts) - _MOST_PARTS, 0),
        "resources": cost_figures.resource_rows(report),
        "by": labels.PARTS[query.by],
        "list": prices.visible_to(user).filter(begin_at__lte=now).first(),
        "may_set": prices.may_set(user),
        **choices(request, query),
        **links(report, now),
        "periods": _periods(query),
    }
    return render(request, "operations/cost.html", context)


@require_safe
def download(request: HttpRequest) -> HttpResponse:
    """Download the figure as CSV: the cost by time and class."""
    report = cost_selectors.cost(person(request), _query(request), now=clock.now())
    text = downloads.csv_text([[downloads.cell(cell) for cell in row] for row in cost_figures.file_rows(report)])
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, f"cost-{report.begin:%Y-%m-%d}.csv")


@require_safe
def pods(request: HttpRequest) -> HttpResponse:
    """List the pods that held resources in a period, with what each cost."""
    query, now = _query(request), clock.now()
    rows = pod_costs.pod_costs(person(request), query, now=now)
    begin, end = query.bounds(now)
    context = {
        "rows": rows[: pod_costs.MOST_PODS],
        "whole_worth": prices.currency(),
        "is_cut": len(rows) > pod_costs.MOST_PODS,
        "most": pod_costs.MOST_PODS,
        "begin": begin,
        "end": end,
        "back": queries.address(query),
    }
    return render(request, "operations/cost_pods.html", context)


def _query(request: HttpRequest) -> GpuTimeQuery:
    """The query of an address; without a period that of 30 days."""
    query = queries.parse(request.GET)
    is_known = query.period in COST_PERIODS and "period" in request.GET
    return query if is_known else replace(query, period=Period.MONTH)


def _periods(query: GpuTimeQuery) -> list[tuple[str, str, bool]]:
    return [
        (str(labels.PERIODS[one]), queries.address(query, period=one.value), one is query.period)
        for one in COST_PERIODS
    ]
