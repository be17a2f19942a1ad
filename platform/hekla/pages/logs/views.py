"""Parts of pages that are read from backends: results and logs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from hekla.apps.accounts.models import User
from hekla.apps.job_history import failures
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.streaming import FileResponse
from hekla.backends.log_search import LogQuery
from hekla.lib.zip_stream import zipped
from hekla.live import files
from hekla.live import logs as read_logs
from hekla.live.logs import read_bytes
from hekla.pages.frame import plots
from hekla.pages.job_forms.forms import LogSearchForm
from hekla.pages.logs import metrics
from hekla.pages.runs.curves import axis_title, line_of
from hekla.pages.runs.plain_text import plain

_MOST_LOGS = 2_000
_DOWNLOAD_CHUNK = 1024 * 1024
_HITS = 100
_EVIDENCE_LINES = 40
_STOP_POLLING = 286
"""A success to which htmx asks no more."""


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101  (the login middleware requires a signed-in person)
    return request.user


@require_GET
def results(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show the metrics that the job prints: the last value of each, and a plot."""
    job = jobs.get(uid, _person(request))
    plots: dict[str, Plot] = {}
    for series in metrics.of_pods(jobs.current_pods(job)):
        plots.setdefault(series.name, Plot()).series.append(series)
    return render(request, "jobs/_results.html", {"job": job, "plots": plots, "is_short": "short" in request.GET})


@dataclass
class Plot:
    """One metric of a job, from every pod that prints it."""

    series: list[metrics.Series] = field(default_factory=list)

    @property
    def last(self) -> str:
        """The newest value of the first pod that prints it."""
        return f"{self.series[0].last:.4g}"

    @property
    def pods(self) -> str:
        return ", ".join(one.pod for one in self.series)

    @property
    def figure(self) -> SafeString | None:
        """The plot as JSON for the page's script; None if every series has a single value."""
        if max(len(one.points) for one in self.series) < 2:  # noqa: PLR2004
            return None
        lines = [line_of(one.points, plain(one.pod)) for one in self.series]
        return plots.json_of(lines, xaxis={"title": axis_title(_("step"))}, showlegend=len(lines) > 1)


@require_GET
def search_log(request: HttpRequest, pod_id: int) -> HttpResponse:
    """Show the next lines of a pod's log that contain a text."""
    jobs.pod(pod_id, _person(request))
    form = LogSearchForm(request.GET)
    if not form.is_valid():
        return render(request, "jobs/_log_found.html", {"problems": form.errors})
    wanted = form.cleaned_data
    needle = LogQuery(wanted["q"], ignore_case=wanted["ignore_case"])
    offset, line = wanted["offset"] or 0, wanted["line"] or 1
    found = read_logs.search(pod_id, _person(request), needle, offset=offset, line=line, most=_HITS)
    more = {"q": needle.text, "offset": found.next_offset, "line": found.next_line}
    more |= {"ignore_case": "on"} if needle.ignore_case else {}
    address = f"{reverse('live:search_log', args=[pod_id])}?{urlencode(more)}"
    return render(request, "jobs/_log_found.html", {"found": found, "more": address, "is_first": not offset})


@require_GET
def evidence(request: HttpRequest, pod_id: int) -> HttpResponse:
    """Show the end of a pod's log, and what it says about the pod's end. After that end, a page that polls stops."""
    pod = jobs.pod(pod_id, _person(request))
    lines = read_logs.last_lines(pod, _EVIDENCE_LINES)
    context = {"pod": pod, "text": "\n".join(lines), "explanation": failures.explain_log("\n".join(lines))}
    return render(request, "jobs/_evidence.html", context, status=_STOP_POLLING if pod.is_final else 200)


@require_GET
def download_log(request: HttpRequest, pod_id: int) -> FileResponse:
    """Download a pod's whole log."""
    pod = jobs.pod(pod_id, _person(request))
    name = f"{pod.job.name}-{pod.task}-{pod.index}-{pod.attempt}.log"
    return FileResponse(_bytes(pod), name, "text/plain; charset=utf-8")


@require_GET
def download_file(request: HttpRequest, pod_id: int) -> HttpResponseBase:
    """Download a file that a pod wrote. Browsers save it and never run it, whatever its name says.

    The page of a job says why clusters offer no files; there leads a link to one of those.
    """
    pod = jobs.pod(pod_id, _person(request))
    if not files.has_files(pod):
        return redirect(f"{reverse('jobs:detail', args=[pod.job.uid])}?tab=files")
    path = request.GET.get("path", "")
    chunks, size = files.read_file(pod, path)
    answer = FileResponse(chunks, path.rpartition("/")[2])
    answer.headers["Content-Length"] = str(size)
    return answer


@require_GET
def download_logs(request: HttpRequest, uid: UUID) -> FileResponse:
    """Download the logs of all pods of a job, including earlier attempts, as a zip archive. At most 2000 logs."""
    job = jobs.get(uid, _person(request))
    pods = jobs.pods(job).select_related("job__cluster")[:_MOST_LOGS]
    files = [(f"{job.name}/{pod}-{pod.attempt}.log", partial(_bytes, pod)) for pod in pods]
    return FileResponse(filter(None, zipped(files)), f"{job.name}-logs.zip", "application/zip")


def _bytes(pod: Pod) -> Iterator[bytes]:
    offset = 0
    while True:
        chunk = read_bytes(pod, offset=offset, limit=_DOWNLOAD_CHUNK)
        if not chunk.data:
            return
        yield chunk.data
        offset = chunk.next_offset
