"""Dashboards of waiting times, throughput and failures of jobs."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.measures import job_labels, job_reports, labels, selectors
from hekla.apps.measures.job_reports import MOST_JOBS, CountedJob, FailurePlace, JobsQuery, JobsReport
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.job_measures import QUANTILES, FailureCause, MomentKind, WaitReason
from hekla.lib import clock
from hekla.pages.frame import downloads
from hekla.pages.frame.people import person
from hekla.pages.frame.selects import options
from hekla.pages.operations import job_figures, job_queries, queries
from hekla.pages.operations.tabs import tabs

_MOST_PARTS = 50
_WAITED = (MomentKind.STARTED, MomentKind.WAITED, MomentKind.UNSTARTED)
"""Moments with a waiting time."""


@require_safe
def waiting(request: HttpRequest) -> HttpResponse:
    """Show how long jobs waited, and how many started and ended."""
    return _page(request, "waiting", waiting_parts)


def waiting_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    query = job_queries.parse(parameters)
    report = job_reports.jobs_report(user, query, now=now, most_parts=_MOST_PARTS)
    return {
        **_shared(report, now),
        "waits": job_figures.waits_figure(report),
        "throughput": job_figures.throughput_figure(report),
        "quantiles": job_figures.quantile_rows(report),
        "quantile_names": [job_figures.quantile_name(part) for part in QUANTILES],
        "mean": job_labels.seconds(report.total.mean_wait),
        "mean_before": job_labels.seconds(report.before.mean_wait),
        "counts": job_figures.count_rows(report),
        "reasons": job_figures.reason_rows(report),
        "longest": job_queries.address(query, of=MomentKind.STARTED.value, order="longest"),
        **_present(report),
    }


@require_safe
def failures(request: HttpRequest) -> HttpResponse:
    """Show how many jobs failed, why, and where."""
    return _page(request, "failures", failures_parts)


def failures_parts(user: User, parameters: QueryDict, now: datetime) -> dict[str, Any]:
    """The live parts of the page. Raises NotFound."""
    query = job_queries.parse(parameters)
    report = job_reports.jobs_report(user, query, now=now, most_parts=_MOST_PARTS)
    failed = report.total.count(MomentKind.FAILED)
    return {
        **_shared(report, now),
        "figure": job_figures.causes_figure(report),
        "causes": job_figures.cause_rows(report),
        "failed": failed,
        "failed_before": report.before.count(MomentKind.FAILED),
        "failed_part": labels.part(failed, report.total.ended),
        "failed_address": job_queries.address(query, of=MomentKind.FAILED.value),
        "places": [_place(user, query, place, now) for place in FailurePlace],
    }


def _page(
    request: HttpRequest, name: str, parts: Callable[[User, QueryDict, datetime], dict[str, Any]]
) -> HttpResponse:
    """The page of this name, with its live parts."""
    now, user = clock.now(), person(request)
    context = parts(user, request.GET, now)
    query = context["report"].query
    context |= {"tabs": tabs(f"operations:{name}"), **_choices(user, query, now)}
    context["live"] = queries.live(name, job_queries.address(query), query.until)
    return render(request, f"operations/{name}.html", context)


@require_safe
def waiting_file(request: HttpRequest) -> HttpResponse:
    """Download counts and waiting times as CSV."""
    report = _for_file(request)
    return _file(f"waiting-{report.begin:%Y-%m-%d}.csv", job_figures.waiting_file(report))


@require_safe
def failures_file(request: HttpRequest) -> HttpResponse:
    """Download failures by cause as CSV."""
    report = _for_file(request)
    return _file(f"failures-{report.begin:%Y-%m-%d}.csv", job_figures.failures_file(report))


@require_safe
def counted(request: HttpRequest) -> HttpResponse:
    """List the jobs that a figure counts."""
    now, query, user = clock.now(), job_queries.parse(request.GET), person(request)
    what, part = job_queries.kind_of(request.GET), job_queries.part_of(request.GET)
    places = job_queries.places_of(request.GET)
    longest = request.GET.get("order") == "longest"
    rows = job_reports.counted_jobs(user, query, what, part=part, places=places, longest=longest, now=now)
    begin, end = query.bounds(now)
    page = "operations:failures" if what is MomentKind.FAILED else "operations:waiting"
    context = {
        **_rows(rows, query, page),
        "page": page,
        "page_name": _("Failures") if page == "operations:failures" else _("Waiting times and throughput"),
        "name": _name(what, part, places.values()),
        "meaning": job_labels.MEANINGS[what],
        "begin": begin,
        "end": end,
        "has_waits": what in _WAITED,
        "has_cause": what is MomentKind.FAILED,
    }
    return render(request, "operations/counted.html", context)


@require_safe
def waiting_now(request: HttpRequest) -> HttpResponse:
    """List the jobs that wait now."""
    query = job_queries.parse(request.GET)
    rows = job_reports.waiting_jobs(person(request), query)
    return render(request, "operations/waiting_now.html", _rows(rows, query, "operations:waiting"))


def _for_file(request: HttpRequest) -> JobsReport:
    """The report of an address. Files have no parts."""
    return job_reports.jobs_report(person(request), job_queries.parse(request.GET), now=clock.now(), most_parts=1)


def _file(name: str, rows: Iterable[list[object]]) -> HttpResponse:
    text = downloads.csv_text([[downloads.cell(cell) for cell in row] for row in rows])
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return downloads.attach(response, name)


def _name(what: MomentKind, part: str, places: Iterable[str]) -> str:
    """What is listed, in words."""
    if what is MomentKind.FAILED and part in list(FailureCause):
        words = [job_labels.KINDS[what], job_labels.CAUSES[FailureCause(part)], *places]
    elif what is MomentKind.WAITED and part in list(WaitReason):
        words = [job_labels.KINDS[what], job_labels.REASONS[WaitReason(part)], *places]
    else:
        words = [job_labels.KINDS[what], *places]
    return " · ".join(map(str, words))


def _rows(rows: list[CountedJob], query: JobsQuery, current: str) -> dict[str, object]:
    return {
        "tabs": tabs(current),
        "rows": job_figures.job_rows(rows[:MOST_JOBS]),
        "is_cut": len(rows) > MOST_JOBS,
        "most": MOST_JOBS,
        "back": job_queries.address(query),
    }


def _place(
    user: User, query: JobsQuery, place: FailurePlace, now: datetime
) -> tuple[str, list[tuple[str, int, str, str]]]:
    """The name of a kind of place, and its rows: place, failures, most frequent cause, query string of the jobs."""
    found = job_reports.failure_places(user, query, place, now=now)
    failed = MomentKind.FAILED.value
    rows = [
        (where, count, str(job_labels.CAUSES[cause]), job_queries.address(query, of=failed, **{place.value: where}))
        for where, count, cause in found
    ]
    return str(job_labels.PLACES[place]), rows


def _present(report: JobsReport) -> dict[str, object]:
    """The jobs that wait now."""
    if report.waiting is None:
        return {"waiting": None}
    return {
        "waiting": report.waiting,
        "waiting_longest": job_labels.seconds(report.waiting.longest),
        "waiting_half": job_labels.seconds(report.waiting.half),
        "waiting_reasons": job_figures.waiting_reasons(report.waiting),
    }


def _shared(report: JobsReport, now: datetime) -> dict[str, object]:
    """The parts and links of both pages."""
    query = report.query
    length = report.end - report.begin
    after = report.end + length
    return {
        "report": report,
        "is_empty": not report.total.counts
        and not report.before.counts
        and not (report.waiting and report.waiting.count),
        "parts": job_figures.part_rows(report.parts, query),
        "more_parts": report.more_parts,
        "by": job_labels.PARTS[query.by],
        "file": job_queries.address(query),
        "before": job_queries.address(query, until=queries.text(report.begin)),
        "after": job_queries.address(query, until=queries.text(after) if after < now else "") if query.until else "",
        "until": queries.text(query.until) if query.until else "",
        "everybody": job_queries.address(query, person=""),
    }


def _choices(user: User, query: JobsQuery, now: datetime) -> dict[str, object]:
    """The choices of the filters."""
    return {
        "clusters": options(((one.name, one.name) for one in clusters.all_clusters()), {query.cluster}),
        "queues": options(((one.name, one.name) for one in queues.visible_to(user)), {query.queue}),
        "tenants": options(((one.slug, one.name) for one in tenancy.visible_to(user)), {query.tenant}),
        "models": options(((one, one) for one in selectors.models()), {query.model}),
        "kinds": options(((one, one) for one in job_reports.kinds(user, now=now)), {query.kind}),
        "sizes": options(((one.value, label) for one, label in job_labels.SIZES.items()), {query.size}),
        "parts_by": options(((one.value, label) for one, label in job_labels.PARTS.items()), {query.by.value}),
        "periods": [
            (str(label), job_queries.address(query, period=one.value), one is query.period)
            for one, label in labels.PERIODS.items()
        ],
    }
