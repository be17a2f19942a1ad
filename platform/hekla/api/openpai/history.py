"""OpenPAI's views of a job's attempts, events and logs."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.openpai import descriptions
from hekla.api.openpai.descriptions import AttemptHistory
from hekla.api.openpai.errors import OpenpaiError
from hekla.api.openpai.jobs import attempt_number
from hekla.api.openpai.views import OpenpaiView, job_at
from hekla.apps.clusters import selectors as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import PodKey
from hekla.backends.logs import read_text
from hekla.backends.pool import get_backend
from hekla.domain.task_spec import TaskSpec

MOST_EVENTS = 500
MOST_LOG_BYTES = 1024 * 1024
_WARNINGS = {"failed", "stopped", "waiting"}


class AttemptListView(OpenpaiView):
    """All attempts."""

    def get(self, request: Request, **where: str) -> Response:
        """The last attempt, then the others, oldest first."""
        attempts = AttemptHistory(job_at(request, where))
        return Response([attempts.history(number) for number in (attempts.last, *range(attempts.last))])


class AttemptView(OpenpaiView):
    """One attempt."""

    def get(self, request: Request, attempt: int, **where: str) -> Response:
        """The attempt with this number, counted from 0."""
        attempts = AttemptHistory(job_at(request, where))
        return Response(attempts.history(attempt_number(attempts, attempt)))


class AttemptsHealthView(OpenpaiView):
    """Whether attempts are available."""

    def get(self, request: Request, **where: str) -> Response:
        """Always ok, if the person can see the job."""
        job_at(request, where)
        return Response({"status": HTTPStatus.OK, "message": "ok"})


class OpenpaiEventsView(OpenpaiView):
    """The events of a job."""

    def get(self, request: Request, **where: str) -> Response:
        """The events with a message, newest first; `type` is Normal or Warning."""
        job = job_at(request, where)
        rows = [_event(job, event) for event in selectors.history(job).order_by("-pk")[:MOST_EVENTS]]
        kind = request.query_params.get("type")
        visible = [row for row in rows if row["message"] and kind in (None, "", row["type"])]
        return Response({"totalCount": len(visible), "data": visible})


class OpenpaiTaskView(OpenpaiView):
    """One replica in an attempt of a job."""

    def get(self, request: Request, attempt: int, role: str, index: int, **where: str) -> Response:
        """All attempts of the replica, newest first."""
        attempts, task = _task_at(request, attempt, role, index, where)
        pods = attempts.pods_of(attempt, task, index)
        tries = [attempts.pod(attempt, task, index, pod, number) for number, pod in enumerate(pods)]
        return Response(
            {
                "username": attempts.job.owner.username,
                "jobName": descriptions.openpai_name(attempts.job),
                "jobAttemptId": attempt,
                "taskRoleName": role,
                **attempts.task_head(task, index, pods),
                "attempts": tries[::-1],
            }
        )


class OpenpaiLogListView(OpenpaiView):
    """The URLs of the logs of a pod."""

    def get(self, request: Request, attempt: int, role: str, index: int, task_attempt: int, **where: str) -> Response:
        """One URL: standard output and error of a pod are one log."""
        _pod_at(request, attempt, role, index, task_attempt, where)
        uri = request.build_absolute_uri(f"{request.path.rstrip('/')}/all")
        return Response({"locations": [{"name": "all", "uri": uri}]})


class OpenpaiLogView(OpenpaiView):
    """The log of a pod."""

    def get(
        self, request: Request, attempt: int, role: str, index: int, task_attempt: int, **where: str
    ) -> HttpResponse:
        """The text of the log, at most the first `MOST_LOG_BYTES`."""
        job, pod = _pod_at(request, attempt, role, index, task_attempt, where)
        key = PodKey(job.uid.hex, pod.task, pod.index, pod.attempt, tenant=job.tenant.slug)
        backend = get_backend(**clusters.backend_facts(job.cluster), home=settings.HEKLA_HOME)
        text = read_text(backend, key, offset=0, limit=MOST_LOG_BYTES, ended=pod.is_final).text
        return HttpResponse(text, content_type="text/plain; charset=utf-8")


def _event(job: Job, event: LoggedEvent) -> dict[str, Any]:
    line = next(iter(history.lines([event])), None)
    payload, at = event.payload, event.at.isoformat().replace("+00:00", "Z")
    return {
        "uid": str(event.pk),
        "frameworkName": str(job.uid),
        "podUid": None,
        "taskroleName": payload.get("task"),
        "taskName": f"{payload['task']}-{payload['index']}" if "index" in payload and "task" in payload else None,
        "taskIndex": payload.get("index"),
        "type": "Warning" if line and line.state in _WARNINGS else "Normal",
        "reason": event.kind,
        "message": line.sentence if line else "",
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "sourceComponent": event.actor_name,
        "sourceHost": payload.get("node") or None,
    }


def _task_at(
    request: Request, attempt: int, role: str, index: int, where: dict[str, str]
) -> tuple[AttemptHistory, TaskSpec]:
    """The job and the task of a URL. Raises OpenpaiError."""
    attempts = AttemptHistory(job_at(request, where))
    task = attempts.task_called(role)
    if task is None or index >= task.replicas:
        name = descriptions.framework_name(attempts.job)
        facts = {"task": f"{role[:255]}-{index}", "name": name}
        raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoTaskError", _("Task %(task)s is not found in %(name)s.") % facts)
    attempt_number(attempts, attempt)
    return attempts, task


def _pod_at(
    request: Request, attempt: int, role: str, index: int, task_attempt: int, where: dict[str, str]
) -> tuple[Job, Pod]:
    """The job and the pod of a URL. Raises OpenpaiError."""
    attempts, task = _task_at(request, attempt, role, index, where)
    pods = attempts.pods_of(attempt, task, index)
    if task_attempt >= len(pods):
        facts = {"task": f"{role}-{index}", "name": descriptions.framework_name(attempts.job)}
        message = _("Log of task %(task)s is not found in %(name)s.") % facts
        raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoTaskLogError", message)
    return attempts.job, pods[task_attempt]
