"""An idle console's periodic work is bounded: a few queries a minute, and no task runs that finds nothing to do."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from tests.controller.conftest import World

from hekla.apps import due_work
from hekla.apps.alerts.models import AlertAction, AlertChange, AlertRule
from hekla.apps.alerts.selectors import RETENTION as ALERT_RETENTION
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.demonstrations.models import DemoRun, SimulatedWorkload
from hekla.apps.event_log.models import Numbering
from hekla.apps.flows.models import Flow
from hekla.apps.idleness.models import IdlePolicy, SessionMinute
from hekla.apps.idleness.recording import RETENTION
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.apps.invitations.models import Invitation, InvitationMail
from hekla.apps.job_metrics.models import EventMetrics, MetricLog
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import FileUpload, Job, Placement, Pod
from hekla.apps.measures.models import GpuCapacity, StaleJobHour
from hekla.apps.notifications.models import Delivery, Notification
from hekla.apps.policy_lab.models import LabRun
from hekla.apps.queues.models import FederatedQueue
from hekla.apps.reports.models import Report
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.apps.sharing.models import JobFork
from hekla.apps.usage.models import JobFolder
from hekla.apps.workbench.models import ToolSession
from hekla.controller import tasks, watcher
from hekla.controller.controllers import controllers
from hekla.controller.periodic import EACH_MINUTE, SAFETY_RUNS
from hekla.lib import clock

ALL = (*SAFETY_RUNS, *EACH_MINUTE)
MOST_QUERIES = 20
"""Of a reconciliation of a cluster without jobs, some of which come only once a minute."""
NOW = clock.now()
SOON, LATER = NOW + timedelta(seconds=25), NOW + timedelta(minutes=5)
OF_SESSIONS = {"hekla.idleness.watch", "hekla.workbench.follow_pods", "hekla.workbench.look_after_starts"}


def tasks_with_work() -> set[str]:
    return set(due_work.tasks_with_work(ALL, now=NOW))


def ended_job(world: World) -> Job:
    return Job.objects.create(
        **{"name": "one", "tenant": world.tenant, "owner": world.alice, "queue": world.queue},
        **{"cluster": world.cluster, "spec": {}, "kind": "job", "replicas": 1},
        **{"phase": "completed", "submitted_at": NOW, "finished_at": NOW},
    )


def waiting_job(world: World) -> Job:
    job = ended_job(world)
    Job.objects.filter(pk=job.pk).update(phase="pending", finished_at=None)
    return job


def ended_pod(world: World, **values: Any) -> Pod:
    place = {"task": "main", "index": 0, "attempt": 0, "version": 1, "slot": 0, "address": "a"}
    return Pod.objects.create(job=ended_job(world), **place, created_at=NOW, **{"phase": "succeeded", **values})


def report(world: World, next_at: Any) -> None:
    Report.objects.create(name="r", owner=world.alice, spec={}, next_at=next_at, created_at=NOW, changed_at=NOW)


def session(world: World, **values: Any) -> ToolSession:
    pod = ended_pod(world)
    return ToolSession.objects.create(slug="s", pod=pod, owner=world.alice, tool="jupyter", created_at=NOW, **values)


def schedule(world: World, **values: Any) -> Schedule:
    own = {"name": "s", "tenant": world.tenant, "owner": world.alice, "spec": {}}
    return Schedule.objects.create(**own, looked_at=NOW, created_at=NOW, **values)


def invitation(world: World) -> Invitation:
    times = {"created_at": NOW, "expires_at": LATER}
    return Invitation.objects.create(tenant=world.tenant, role="member", invited_by=world.alice, **times)


def batch(world: World, ended_at: Any, job: Job) -> None:
    own = {"name": "b", "tenant": world.tenant, "owner": world.alice, "kind": "sweep"}
    made = Batch.objects.create(**own, submitted_at=NOW, ended_at=ended_at)
    BatchJob.objects.create(batch=made, number=0, job=job)


def delivery(world: World, **values: Any) -> None:
    notification = Notification.objects.create(user=world.alice, key="k", moment="ended", at=NOW)
    Delivery.objects.create(notification=notification, channel="mail", **values)


def flow(world: World, **values: Any) -> None:
    Flow.objects.create(name="f", tenant=world.tenant, owner=world.alice, spec={}, started_at=NOW, **values)


def demonstration(world: World, **values: Any) -> None:
    own = {"demonstration": "d", "cluster": world.cluster, "tenant": world.tenant, "owner": world.alice}
    DemoRun.objects.create(**own, started_at=NOW, **values)


def teams(world: World, **values: Any) -> None:
    SimulatedWorkload.objects.create(cluster=world.cluster, since=NOW, **values)


def movable_job(world: World) -> None:
    queue = FederatedQueue.objects.create(name="all", changed_at=NOW, created_at=NOW)
    Placement.objects.create(job=waiting_job(world), federated_queue=queue, at=NOW)


def impersonation(world: World, **values: Any) -> None:
    ImpersonationSession.objects.create(admin=world.alice, person=world.alice, reason="r", began_at=NOW, **values)


def log(world: World, model: type[MetricLog | EventMetrics], **values: Any) -> None:
    pod = ended_pod(world)
    model.objects.create(pod=pod, job=pod.job, **values)


def minute(world: World, at: Any) -> None:
    SessionMinute.objects.create(session=session(world, ended_at=NOW), at=at)


def upload(world: World, expires_at: Any) -> None:
    FileUpload.objects.create(pod=ended_pod(world), person=world.alice, path="p", size=1, expires_at=expires_at)


def folder(world: World, due_at: Any) -> None:
    JobFolder.objects.create(job=ended_job(world), tenant=world.tenant, due_at=due_at)


def fork(world: World, **values: Any) -> None:
    pod = ended_pod(world)
    JobFork.objects.create(job=pod.job, source=pod, person=world.alice, created_at=NOW, **values)


def idle_gpus(world: World) -> None:
    IdlePolicy.objects.create(tenant=None, gpu_job_minutes=10)
    ended_pod(world, phase="running", cards=[{"resource": "gpu"}])


def alert_rule(world: World, **values: Any) -> AlertRule:
    own = {"name": "down", "owner": world.alice, "spec": {}, "severity": "info"}
    return AlertRule.objects.create(**own, created_at=NOW, changed_at=NOW, **values)


def alert_action(world: World, **values: Any) -> None:
    own = {"rule": alert_rule(world, is_enabled=False), "episode": uuid4(), "number": 0, "moment": "fire"}
    place = {"kind": "cordon", "spec": {}, "subject": "node:1/n1", "name": "n1", "created_at": NOW}
    AlertAction.objects.create(**own, **place, **values)


def alert_change(world: World, at: Any) -> None:
    place = {"rule": alert_rule(world, is_enabled=False), "subject": "node:1/n1", "name": "n1", "at": at}
    AlertChange.objects.create(**place, old="normal", new="firing", reason="breach", threshold=0, clear=0)


def experiment(world: World, **values: Any) -> None:
    period = {"starts_at": NOW - timedelta(days=1), "ends_at": NOW, "created_at": NOW}
    LabRun.objects.create(cluster=world.cluster, policy="", change={}, **period, **values)


def capacity(world: World, **values: Any) -> None:
    of = {"cluster_id": world.cluster.pk, "node": "n", "resource": "nvidia.com/gpu", "model": "A100"}
    GpuCapacity.objects.create(**of, gpus=1000, state="open", begin_at=NOW, **values)


Case = Callable[[World], object]
WAITING = {"hekla.forecasts.request", "hekla.notifications.look"}
WORK: list[tuple[Case, set[str]]] = [
    (lambda world: schedule(world, next_at=SOON), {"hekla.schedules.start_due"}),
    (lambda world: schedule(world, next_at=LATER), set()),
    (lambda world: schedule(world, next_at=SOON, is_suspended=True), set()),
    (
        lambda world: ScheduleRun.objects.create(
            schedule=schedule(world), due_at=NOW, outcome="started", job=ended_job(world)
        ),
        {"hekla.schedules.tidy"},
    ),
    (flow, {"hekla.flows.advance"}),
    (lambda world: flow(world, ended_at=NOW), set()),
    (demonstration, {"hekla.demonstrations.advance"}),
    (lambda world: demonstration(world, ended_at=NOW), set()),
    (lambda world: teams(world, next_at=SOON), {"hekla.demonstrations.advance"}),
    (lambda world: teams(world, next_at=NOW, removed_at=NOW), set()),
    (
        lambda world: (teams(world, next_at=NOW, removed_at=NOW), ended_job(world)),
        {"hekla.demonstrations.advance"},
    ),
    (
        lambda _world: Numbering.objects.update(last=Numbering.objects.get().last + 1),
        {"hekla.notifications.follow", "hekla.job_metrics.follow"},
    ),
    (lambda world: delivery(world, due_at=SOON), {"hekla.notifications.send"}),
    (lambda world: delivery(world, due_at=LATER), set()),
    (lambda world: delivery(world, due_at=NOW, sent_at=NOW), set()),
    (
        lambda world: InvitationMail.objects.create(invitation=invitation(world), link=b"", due_at=SOON),
        {"hekla.invitations.send"},
    ),
    (lambda world: InvitationMail.objects.create(invitation=invitation(world), link=b"", due_at=None), set()),
    (ended_job, set()),
    (waiting_job, WAITING),
    (movable_job, {"hekla.federated_queues.move", *WAITING}),
    (lambda world: log(world, MetricLog, due_at=SOON), {"hekla.job_metrics.follow"}),
    (lambda world: log(world, MetricLog, due_at=NOW, is_complete=True), set()),
    (lambda world: log(world, EventMetrics, due_at=SOON), {"hekla.job_metrics.follow"}),
    (lambda world: batch(world, None, ended_job(world)), {"hekla.job_metrics.follow"}),
    (lambda world: batch(world, NOW, ended_job(world)), set()),
    (lambda world: batch(world, NOW, waiting_job(world)), {"hekla.job_metrics.follow", *WAITING}),
    (lambda world: impersonation(world, until=NOW), {"hekla.impersonation.end_overdue"}),
    (lambda world: impersonation(world, until=LATER), set()),
    (
        lambda world: (ended_job(world), Job.objects.update(expires_at=NOW + timedelta(minutes=59))),
        {"hekla.notifications.look"},
    ),
    (session, OF_SESSIONS),
    (lambda world: session(world, ended_at=NOW), set()),
    (idle_gpus, {"hekla.idleness.watch"}),
    (lambda world: minute(world, NOW - RETENTION - timedelta(minutes=1)), {"hekla.idleness.watch"}),
    (lambda world: minute(world, NOW), set()),
    (lambda world: upload(world, NOW), {"hekla.pod_files.look_after"}),
    (lambda world: folder(world, NOW), {"hekla.pod_files.look_after"}),
    (lambda world: folder(world, LATER), set()),
    (fork, {"hekla.job_forks.copy"}),
    (alert_rule, {"hekla.alerts.evaluate"}),
    (lambda world: alert_rule(world, is_enabled=False), set()),
    (lambda world: alert_action(world, due_at=SOON), {"hekla.alerts.act"}),
    (lambda world: alert_action(world, due_at=LATER), set()),
    (lambda world: alert_action(world, due_at=NOW, done_at=NOW), set()),
    (lambda world: alert_change(world, NOW - ALERT_RETENTION - timedelta(minutes=1)), {"hekla.alerts.tidy"}),
    (lambda world: alert_change(world, NOW), set()),
    (lambda world: report(world, NOW), {"hekla.reports.send_due"}),
    (lambda world: report(world, LATER), set()),
    (lambda world: report(world, None), set()),
    (experiment, {"hekla.policy_lab.request"}),
    (lambda world: experiment(world, state="finished"), set()),
    (capacity, {"hekla.measures.roll_up"}),
    (lambda world: capacity(world, end_at=NOW), set()),
    (
        lambda world: StaleJobHour.objects.create(cluster_id=world.cluster.pk, at=NOW, since=NOW),
        {"hekla.measures.count_jobs"},
    ),
    (lambda world: fork(world, ended_at=NOW), set()),
]


@pytest.fixture(autouse=True)
def tasks_are_loaded() -> None:
    """As in a worker: the modules of the tasks declare their work."""
    current_app.loader.import_default_modules()


def test_every_periodic_task_declares_its_work() -> None:
    assert [name for name in ALL if not due_work.is_declared(name)] == []


@pytest.fixture
def idle(simulated: World) -> World:
    """Everything has been done: the log is followed, and the cluster is reconciled."""
    controllers.reconcile(simulated.cluster)
    tasks.run_each(list(ALL))
    controllers.reconcile(simulated.cluster)
    return simulated


def test_tasks_with_work_are_found_and_no_others(idle: World) -> None:
    assert tasks_with_work() == set()
    for case, (make, expected) in enumerate(WORK):
        with transaction.atomic():
            make(idle)
            assert tasks_with_work() == expected, f"case {case}"
            transaction.set_rollback(True)
    assert set().union(*(expected for _make, expected in WORK)) == {*ALL}


def test_idle_console_asks_little(idle: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "request_reconcile", lambda _cluster: None)
    assert queries(lambda: tasks.run_each(list(SAFETY_RUNS))) == 1
    assert queries(lambda: tasks.run_each(list(EACH_MINUTE))) == 1
    assert queries(lambda: watcher.is_due(selectors.watched(idle.cluster.pk))) == 2
    assert queries(lambda: controllers.reconcile(idle.cluster)) <= MOST_QUERIES


def queries(action: Callable[[], object]) -> int:
    """How many statements this sends."""
    with CaptureQueriesContext(connection) as captured:
        action()
    return len(captured)
