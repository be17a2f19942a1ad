"""The resource usage on the pages of a job and of a pod. The part polls for updates while the pods run."""

from collections.abc import Sequence
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import autoscaling, selectors
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.usage import plots

MOST_LINES = 7
"""The number of distinguishable colours. With more pods, each line is a whole task."""
_MOST_PODS = 2000


@require_safe
def job(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show the resource usage of a job's pods."""
    found = jobs.get(uid, person(request))
    pods = list(jobs.pods(found).exclude(started_at=None)[:_MOST_PODS])
    by_task = len({str(pod) for pod in pods}) > MOST_LINES
    scaled = autoscaling.of_job(found, now=clock.now()) if not found.is_final else []
    return _part(request, found, pods, by_task=by_task, address=reverse("usage:job", args=[uid]), scaled=scaled)


@require_safe
def pod(request: HttpRequest, pod_id: int) -> HttpResponse:
    """Show the resource usage of one pod."""
    found = jobs.pod(pod_id, person(request))
    return _part(request, found.job, [found], by_task=False, address=reverse("usage:pod", args=[pod_id]))


def _part(
    request: HttpRequest,
    job: Job,
    pods: Sequence[Pod],
    *,
    by_task: bool,
    address: str,
    scaled: Sequence[autoscaling.TaskScaling] = (),
) -> HttpResponse:
    points = selectors.course(pods, by_task=by_task, now=clock.now())
    requested = _requests(job, pods, by_task=by_task)
    context = {
        "job": job,
        "address": address,
        "pictures": plots.pictures(points, requested),
        "rows": plots.rows(points, requested),
        "by_task": by_task,
        "is_over": all(pod.is_final for pod in pods) and job.is_final,
        "has_started": bool(pods),
        "holds_gpus": any(pod.cards for pod in pods),
        "scaled": scaled,
    }
    return render(request, "usage/_use.html", context)


def _requests(job: Job, pods: Sequence[Pod], *, by_task: bool) -> dict[str, Resources]:
    """The request of each line: of a pod, or of all replicas of a task."""
    spec = spec_of(job)
    if by_task:
        return {task.name: task.request * task.replicas for task in spec.tasks}
    return {str(pod): spec.task(pod.task).request for pod in pods}
