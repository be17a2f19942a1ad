"""The comparison of jobs. Its address has all of it: the jobs, the order, the ranking and the charts."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.event_log import selectors as event_log
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.runs import context as comparison
from hekla.pages.runs.table_file import table_text


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Show the jobs of the address beside each other; without jobs, how to choose some."""
    since = event_log.last_number()
    context = comparison.page(comparison.table(request.GET, person(request)), request.GET)
    return render(request, "runs/compare.html", context | {"since": since})


@require_safe
def table_file(request: HttpRequest) -> HttpResponse:
    """Download the comparison as CSV, with all metrics, in the order of the page."""
    found = comparison.table(request.GET, person(request))
    answer = HttpResponse(table_text(found), content_type="text/csv; charset=utf-8")
    return downloads.attach(answer, f"comparison-{clock.now():%Y-%m-%d}.csv")
