"""Metrics of background tasks, and the endpoint where a worker serves its metrics."""

import logging
import time
from typing import Any

from celery import Task
from celery.signals import before_task_publish, task_failure, task_postrun, task_prerun, worker_ready
from django.conf import settings
from prometheus_client import Counter, Histogram, start_http_server

from hekla.apps.system.messages import SENT_AT, note_failure

log = logging.getLogger(__name__)
TASKS = Counter("hekla_tasks", "Finished tasks of a worker, by their final state.", ["task", "state"])
TASK_SECONDS = Histogram(
    "hekla_task_duration_seconds",
    "Run time of tasks.",
    ["task"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
_began: dict[str, float] = {}


@task_prerun.connect
def begin(*, task_id: str, **_kwargs: Any) -> None:  # noqa: ANN401
    """Record the start of a task."""
    _began[task_id] = time.perf_counter()


@task_postrun.connect
def end(*, task_id: str, task: Task[..., Any], state: str | None, **_kwargs: Any) -> None:  # noqa: ANN401
    """Record the duration and the final state of a task."""
    if (began := _began.pop(task_id, None)) is not None:
        TASK_SECONDS.labels(task.name).observe(time.perf_counter() - began)
    TASKS.labels(task.name, (state or "unknown").lower()).inc()


@worker_ready.connect
def serve(**_kwargs: Any) -> None:  # noqa: ANN401
    """Serve the metrics of this worker if a port is configured. A failure is logged, and the worker continues."""
    if not settings.METRICS_PORT:
        return
    try:
        start_http_server(settings.METRICS_PORT, settings.METRICS_HOST)
    except OSError as error:
        log.error("cannot serve metrics at %s:%s: %s", settings.METRICS_HOST, settings.METRICS_PORT, error)


@before_task_publish.connect
def stamp(*, headers: dict[str, Any] | None = None, **_kwargs: Any) -> None:  # noqa: ANN401
    """Write the time into each message, so that the age of the waiting ones is known."""
    if headers is not None:
        headers[SENT_AT] = time.time()


@task_failure.connect
def remember(*, sender: Task[..., Any] | None = None, exception: BaseException, **_kwargs: Any) -> None:  # noqa: ANN401
    """Remember the failure for the page of the system."""
    note_failure(sender.name if sender else "", exception)
