"""Dashboards of what became of the capacity."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import services
from hekla.apps.measures import labels, ledger, pod_costs, selectors
from hekla.apps.measures.cost_selectors import CostReport
from hekla.apps.measures.selectors import GpuTimeQuery, GpuTimeReport
from hekla.apps.prices import selectors as prices
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.prices import in_words
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import figures, queries
from hekla.pages.operations.tabs import tabs

_MOST_PARTS = 50


@require_safe
def gpu_time(request: HttpRequest) -> HttpResponse:
    """Show what became of the GPU time of a period."""
    now, user = clock.now(), person(request)
    context = gpu_time_parts(user, request.GET, now)
    query = context["report"].query
    context |= {"tabs": tabs("operations:gpu_time"), **choices(request, query)}
    context["live"] = queries.live("gpu_time", queries.address(query), query.until)
    return render(request, "operations/gpu_time.html", context)


def gpu_time_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    query = queries.parse(parameters)
    report = selectors.gpu_time(user, query, now=now)
    return {
        "report": report,
        "figure": figures.figure(report),
        "is_empty": not any(report.totals.values()),
        "classes": figures.class_rows(report),
        "whole": labels.hours(sum(report.totals.values())),
        "whole_before": labels.hours(sum(report.before.values())),
        "parts": figures.part_rows(report.parts[:_MOST_PARTS], query),
        "more_parts": max(len(report.parts) - _MOST_PARTS, 0),
        "by": labels.PARTS[query.by],
        **links(report, now),
    }


@require_safe
def gpu_time_file(request: HttpRequest) -> HttpResponse:
    """Download the figure as CSV: GPU hours by time and class."""
    report = selectors.gpu_time(person(request), queries.parse(request.GET), now=clock.now())
    text = downloads.csv_text([[downloads.cell(cell) for cell in row] for row in figures.file_rows(report)])
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, f"gpu-time-{report.begin:%Y-%m-%d}.csv")


@require_safe
def holdings(request: HttpRequest) -> HttpResponse:
    """List the pods whose GPU time a class counts."""
    query, what = queries.parse(request.GET), queries.class_of(request.GET)
    rows = ledger.holdings(person(request), query, what, now=clock.now())
    begin, end = query.bounds(clock.now())
    context = {
        "rows": rows[: ledger.MOST],
        "is_cut": len(rows) > ledger.MOST,
        "most": ledger.MOST,
        "name": labels.CLASSES[what],
        "meaning": labels.MEANINGS[what],
        "begin": begin,
        "end": end,
        "back": queries.address(query),
    }
    return render(request, "operations/holdings.html", context)


@require_safe
def waste(request: HttpRequest) -> HttpResponse:
    """List who holds GPUs now without using them, and since when."""
    context = waste_parts(person(request), request.GET, clock.now()) | {"tabs": tabs("operations:waste")}
    context["live"] = queries.live("waste", queries.address(queries.parse(request.GET)))
    return render(request, "operations/waste.html", context)


def waste_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    rows = pod_costs.with_costs(ledger.waste(user, queries.parse(parameters), now=now), now=now)
    currency = prices.currency()
    return {
        "rows": rows,
        "whole": labels.hours(sum(row.gpu_us for row in rows)),
        "whole_worth": in_words(sum(row.cost or 0 for row in rows), currency) if currency else "",
        "minutes": ledger.WASTED_MINUTES,
        "remindable": {row.pod.job_id for row in rows if row.pod and services.may_remind(user, row.pod.job)},
    }


def choices(request: HttpRequest, query: GpuTimeQuery) -> dict[str, object]:
    """The choices of the filters."""
    user = person(request)
    return {
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {query.cluster}),
        "queues": options(((one.name, one.name) for one in queues.visible_to(user)), {query.queue}),
        "tenants": options(((one.slug, one.name) for one in tenancy.visible_to(user)), {query.tenant}),
        "models": options(((one, one) for one in selectors.models()), {query.model}),
        "parts_by": options(((one.value, label) for one, label in labels.PARTS.items()), {query.by.value}),
        "periods": [
            (str(label), queries.address(query, period=one.value), one is query.period)
            for one, label in labels.PERIODS.items()
        ],
    }


def links(report: GpuTimeReport | CostReport, now: datetime) -> dict[str, object]:
    """The addresses of the file, and of the periods before and after."""
    query, length = report.query, report.end - report.begin
    after = report.end + length
    return {
        "file": queries.address(query),
        "before": queries.address(query, until=queries.text(report.begin)),
        "after": queries.address(query, until=queries.text(after) if after < now else "") if query.until else "",
        "until": queries.text(query.until) if query.until else "",
    }
