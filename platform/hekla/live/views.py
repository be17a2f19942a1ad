"""Pages' parts that are read from backends: results, and logs to keep."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.live import metrics
from hekla.live.logs import read_bytes

_DOWNLOAD_CHUNK = 1024 * 1024


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101  (the login middleware lets nobody else through)
    return request.user


@require_GET
def results(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The figures that the job prints: the last value of each, and their course."""
    job = jobs.get(uid, _person(request))
    plots: dict[str, Plot] = {}
    for series in metrics.of_pods(jobs.current_pods(job)):
        plots.setdefault(series.name, Plot()).series.append(series)
    return render(request, "jobs/_results.html", {"job": job, "plots": plots})


@dataclass
class Plot:
    """One figure of a job, from every pod that prints it."""

    series: list[metrics.Series] = field(default_factory=list)

    @property
    def last(self) -> str:
        """The newest value of the first pod that prints it."""
        return f"{self.series[0].values[-1]:.4g}"

    @property
    def pods(self) -> str:
        return ", ".join(one.pod for one in self.series)

    @property
    def figure(self) -> dict[str, Any] | None:
        """Its course as Plotly draws it; None for a single value."""
        if max(len(one.values) for one in self.series) < 2:  # noqa: PLR2004
            return None
        lines = [{"x": one.steps, "y": one.values, "mode": "lines", "name": one.pod} for one in self.series]
        return {"data": lines, "layout": {"xaxis": {"title": {"text": "step"}}}}


@require_GET
def download_log(request: HttpRequest, pod_id: int) -> StreamingHttpResponse:
    """A pod's whole log as a file."""
    pod = jobs.pod(pod_id, _person(request))
    name = f"{pod.job.name}-{pod.task}-{pod.index}-{pod.attempt}.log"
    response = StreamingHttpResponse(_bytes(pod), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _bytes(pod: Pod) -> Iterator[bytes]:
    offset = 0
    while True:
        chunk = read_bytes(pod, offset=offset, limit=_DOWNLOAD_CHUNK)
        if not chunk.data:
            return
        yield chunk.data
        offset = chunk.next_offset
