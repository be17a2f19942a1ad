"""Pages of reports: the list, one report as its reader may see it, its files and its history."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts.models import User
from hekla.apps.reports import composing, html, labels, leaving, pdf, selectors, services
from hekla.apps.reports.contents import ReportContents
from hekla.apps.reports.models import Report
from hekla.domain.errors import NotFound, Refused
from hekla.domain.reports import ReportSpan, ReportSpec
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing, listing_of
from hekla.pages.operations.tabs import tabs
from hekla.pages.reports.tables import ReportRunsTable, ReportsFilter, ReportsTable, state_badge


@require_safe
def reports(request: HttpRequest) -> HttpResponse:
    """List the reports that the person owns or gets."""
    found = listing(request, ReportsTable, selectors.visible_to(person(request)), ReportsFilter)
    return render(request, "reports/list.html", {"reports": found, "tabs": tabs("reports:list")})


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def leave(request: HttpRequest, secret: str) -> HttpResponse:
    """The link in a mail: a button that takes its recipient off the report, so that link previews change nothing."""
    try:
        report, reader = leaving.parse(secret)
        if request.method == "POST":
            services.leave(report, user=reader, now=clock.now())
    except (NotFound, Refused) as error:
        return render(request, "reports/leave.html", {"refusal": error.message}, status=404)
    return render(request, "reports/leave.html", {"report": report, "is_done": request.method == "POST"})


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show a report of the last whole period, its settings and its history."""
    report = selectors.get(uid, person(request))
    spec = selectors.spec_of(report)
    return _page(request, report, spec, spec.span(clock.now()))


@require_safe
def run(request: HttpRequest, uid: UUID, run: UUID) -> HttpResponse:
    """Show a report of the period of which it was sent once, with what this person may see now."""
    report = selectors.get(uid, person(request))
    return _page(request, report, selectors.spec_of(report), selectors.span_of(report, run), run)


@require_safe
def html_file(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download a report as one HTML file."""
    report, spec, span, contents = _of_file(request, uid)
    response = HttpResponse(html.document(contents, composing.address(report)), content_type="text/html; charset=utf-8")
    return downloads.attach(response, composing.file_name(spec, span, "html"))


@require_safe
def pdf_file(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download a report as PDF."""
    report, spec, span, contents = _of_file(request, uid)
    response = HttpResponse(pdf.document(contents, composing.address(report)), content_type="application/pdf")
    return downloads.attach(response, composing.file_name(spec, span, "pdf"))


@require_POST
def pause(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Pause or resume the report."""
    report, is_paused = selectors.get(uid, person(request)), request.POST.get("pause") == "yes"
    services.pause(report, paused=is_paused, user=person(request), now=clock.now())
    return redirect("reports:detail", uid)


@require_POST
def send(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Send the report of the last whole period now."""
    report = selectors.get(uid, person(request))
    services.send_now(report, user=person(request), now=clock.now())
    messages.success(request, _("The report is being sent. See the history for the result."))
    return redirect("reports:detail", uid)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete the report."""
    report = selectors.get(uid, person(request))
    services.delete(report, user=person(request), now=clock.now())
    messages.success(request, _("Deleted report %s.") % report)
    return redirect("reports:list")


def _of_file(request: HttpRequest, uid: UUID) -> tuple[Report, ReportSpec, ReportSpan, ReportContents]:
    """The report of the run in the address, or of the last whole period. Raises NotFound."""
    user = person(request)
    report = selectors.get(uid, user)
    spec = selectors.spec_of(report)
    span = _span(request, report, spec)
    return report, spec, span, composing.compose(spec, span, user, now=clock.now())


def _span(request: HttpRequest, report: Report, spec: ReportSpec) -> ReportSpan:
    try:
        return selectors.span_of(report, UUID(request.GET["run"]))
    except (KeyError, ValueError):
        return spec.span(clock.now())


def _page(
    request: HttpRequest, report: Report, spec: ReportSpec, span: ReportSpan, run: UUID | None = None
) -> HttpResponse:
    user = person(request)
    history = listing_of(request.GET, ReportRunsTable, selectors.runs(report, user))
    context = {
        "report": report,
        "run": run,
        "state": state_badge(report),
        "may_change": selectors.may_change(user, report),
        "stopped": labels.STOPPED.get(report.stopped, ""),
        "history": history,
        **_settings(selectors.spec_for(report, user)),
        **_contents(spec, span, user),
    }
    return render(request, "reports/detail.html", context)


def _settings(spec: ReportSpec) -> dict[str, Any]:
    return {"spec": spec, "times": labels.times(spec), "period": labels.PERIODS[spec.period]}


def _contents(spec: ReportSpec, span: ReportSpan, user: User) -> dict[str, Any]:
    """The report, or why this person cannot see it any more."""
    if found := selectors.obstacle(user, spec):
        return {"contents": None, "obstacle": labels.OBSTACLES[found]}
    contents = composing.compose(spec, span, user, now=clock.now())
    parts = [(part, html.figure_of(part.figure) if part.figure else "") for part in contents.parts]
    return {"contents": contents, "parts": parts}
