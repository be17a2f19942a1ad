"""Pages' parts that are read from backends: results, and logs to keep."""

from collections.abc import Iterator
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
    series = metrics.of_pods(jobs.current_pods(job))
    plots: dict[str, list[metrics.Series]] = {}
    for one in series:
        plots.setdefault(one.name, []).append(one)
    return render(request, "jobs/_results.html", {"job": job, "plots": plots})


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
