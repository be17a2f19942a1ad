"""The Celery tasks that run the controller. Each is one call that may be repeated or lost."""

import logging
import time
from threading import Lock

from celery import current_app, shared_task
from django.db import DatabaseError, connection

from hekla.apps import due_work
from hekla.apps.batches import ending
from hekla.apps.batches import selectors as batches
from hekla.apps.clusters import selectors as clusters
from hekla.apps.idleness import job_selectors as idle_jobs
from hekla.apps.idleness import recording
from hekla.apps.job_metrics import selectors as metrics
from hekla.apps.job_metrics.wake import following
from hekla.apps.jobs import selectors as jobs
from hekla.apps.measures import queue_selectors as queue_measures
from hekla.apps.measures import queue_services
from hekla.apps.measures import selectors as measures
from hekla.apps.measures import services as measuring_gpus
from hekla.apps.measures.job_counting import counting_work
from hekla.apps.measures.signals import GPUS, JOBS, rolled_up
from hekla.apps.policy_lab import selectors as policy_lab
from hekla.apps.sharing import selectors as sharing
from hekla.apps.sharing.wake import copying
from hekla.apps.usage import folders
from hekla.apps.wakeups import Wakeup
from hekla.apps.workbench import selectors as sessions
from hekla.backends import registry
from hekla.controller import event_files, health, job_forks, job_metrics
from hekla.controller import policy_lab as experiments
from hekla.controller.controllers import controllers
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.pod_files import measuring, uploading
from hekla.simulation import federation, forecasting
from hekla.workbench import idling, tools

log = logging.getLogger(__name__)
moving = Wakeup("hekla.federated_queues.move")
_COPY_SECONDS = 3.0
_MOVE_SECONDS = 5.0
_HANGS_SECONDS = 600.0
_started: dict[str, float] = {}
"""When `run_each` started the tasks that it runs now in this process."""
_lock = Lock()


@shared_task(name="hekla.controller.turn")
def turn(cluster_id: int) -> None:
    """Reconcile one cluster."""
    try:
        controllers.reconcile(clusters.by_id(cluster_id))
    except NotFound:
        return


@shared_task(name="hekla.controller.tick")
def tick() -> None:
    """Reconcile every active cluster (Celery beat). Each gets its own task, so a slow cluster delays no other.

    The threads of `watcher` request that too, sooner: this is for clusters whose thread hangs.
    """
    for cluster in clusters.active():
        turn.apply_async(args=(cluster.pk,), expires=2)


@shared_task(name="hekla.health.look")
def look(cluster_id: int) -> None:
    """Check the health of one cluster."""
    try:
        health.look(clusters.by_id(cluster_id))
    except NotFound:
        return


@shared_task(name="hekla.health.look_around")
def look_around() -> None:
    """Check the health of every cluster, paused ones included (Celery beat). Each gets its own task."""
    for cluster in clusters.all_clusters():
        if registry.reports_health(cluster.kind):
            look.apply_async(args=(cluster.pk,), expires=25)


@shared_task(name="hekla.controller.foretell")
def foretell() -> None:
    """Record forecasts for newly pending jobs, so their accuracy can be measured later."""
    for cluster in clusters.active():
        forecasting.record(cluster)


@shared_task(name="hekla.forecasts.request")
def request_forecasts() -> None:
    """Wake `foretell`, which takes too long to run among other tasks."""
    foretell.apply_async(retry=False, expires=20)


@shared_task(name="hekla.federated_queues.move")
def move() -> None:
    """Move pending jobs of federated queues to clusters where they would start now. Repeats while there are any."""
    federation.move_waiting()
    if jobs.movable().exists():
        moving.after(_MOVE_SECONDS)


@shared_task(name="hekla.idleness.watch")
def watch_sessions() -> None:
    """Measure what keeps sessions with pods, warn of idle ones, and end those that stay idle."""
    idling.watch(now=clock.now())


@shared_task(name="hekla.job_metrics.follow")
def follow_metrics() -> None:
    """Read the metrics that jobs print or write, and end batches that are over. Repeats when the next part is due."""
    job_metrics.read_metrics(now=clock.now())
    event_files.read_event_files(now=clock.now())
    ending.end_batches(now=clock.now())
    following.at(metrics.next_due(), now=clock.now())


@shared_task(name="hekla.job_forks.copy")
def copy_forks() -> None:
    """Copy files to forks that run. Repeats soon while there are new ones that do not run yet."""
    job_forks.copy_files(now=clock.now())
    if sharing.any_new_fork(now=clock.now()):
        copying.after(_COPY_SECONDS)


@shared_task(name="hekla.workbench.look_after_starts")
def look_after_starts() -> None:
    """End tools in pods that did not answer in time (Celery beat)."""
    tools.look_after_starts(now=clock.now())


@shared_task(name="hekla.pod_files.look_after")
def look_after_files() -> None:
    """Forget uploads that expired, and measure the folders of jobs that are due."""
    while uploading.drop_expired(now=clock.now()):
        pass
    measuring.measure_due(now=clock.now())


@shared_task(name="hekla.measures.roll_up")
def roll_up_measures() -> None:
    """Follow the log, and add up the GPU time of the minutes that are over (Celery beat)."""
    measuring_gpus.roll_up(now=clock.now())
    rolled_up.send(None, topic=GPUS)


@shared_task(name="hekla.measures.roll_up_queues")
def roll_up_queues() -> None:
    """Add up the amounts of queues in the hours that are over (Celery beat)."""
    queue_services.roll_up_queues(now=clock.now())


@shared_task(name="hekla.measures.count_jobs")
def count_jobs() -> None:
    """Count what happened to jobs, how long they waited and why they failed (Celery beat)."""
    measuring_gpus.count_jobs(now=clock.now())
    rolled_up.send(None, topic=JOBS)


@shared_task(name="hekla.policy_lab.run")
def run_experiments() -> None:
    """Run the experiments of the policy lab that wait."""
    experiments.run_waiting()


@shared_task(name="hekla.policy_lab.request")
def request_experiments() -> None:
    """Wake `run_experiments`, which takes too long to run among other tasks."""
    run_experiments.apply_async(retry=False, expires=20)


@shared_task(name="hekla.run_each")
def run_each(names: list[str]) -> None:
    """Run those of these tasks that have work, one after another (Celery beat). One that fails stops no other.

    One that still runs for an earlier message is left out. So a slow one delays the others once, and has one thread.
    """
    for name in _with_work(names):
        now = time.monotonic()
        with _lock:
            if now - _started.get(name, float("-inf")) < _HANGS_SECONDS:
                continue
            _started[name] = now
        try:
            current_app.tasks[name]()
        except Exception:
            log.exception("%s failed", name)
        finally:
            _started.pop(name, None)


def _with_work(names: list[str]) -> list[str]:
    """Those of these tasks that have work; all of them if that cannot be found out. Raises if there is no database."""
    try:
        return due_work.tasks_with_work(names, now=clock.now())
    except DatabaseError:  # for example a table that is not migrated yet: that must not stop the others
        if not connection.is_usable():
            raise
        log.exception("cannot find out which tasks have work, so all of them run")
        return names


due_work.declare("hekla.forecasts.request", jobs.forecast_work)
due_work.declare("hekla.policy_lab.request", policy_lab.run_work)
due_work.declare("hekla.federated_queues.move", jobs.move_work)
due_work.declare("hekla.job_metrics.follow", metrics.read_work, batches.end_work)
due_work.declare("hekla.idleness.watch", sessions.session_work, idle_jobs.quiet_work, recording.purge_work)
due_work.declare("hekla.workbench.look_after_starts", sessions.session_work)
due_work.declare("hekla.pod_files.look_after", jobs.upload_work, folders.measure_work)
due_work.declare("hekla.job_forks.copy", sharing.copy_work)
due_work.declare("hekla.measures.roll_up", measures.roll_up_work)
due_work.declare("hekla.measures.roll_up_queues", queue_measures.queue_hours_due)
due_work.declare("hekla.measures.count_jobs", counting_work)
