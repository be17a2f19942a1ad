"""The auditor reports each contradiction in words, and nothing if all is well."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit
from tests.support.pods import start_pod

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import audit as rows
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller import audit
from hekla.controller.backends import backend_of
from hekla.controller.pods import order_of
from hekla.lib import clock


def findings() -> list[str]:
    return audit.findings(again_after_seconds=0.0)


@pytest.fixture
def finished(world: World) -> Job:
    """A job of two pods that ran to its end."""
    job = submit(world, "one", ["sh", "-c", "echo hello"], replicas=2, seconds=0.1)
    world.reconcile_until(lambda: phase(job) == "completed")
    return Job.objects.get(pk=job.pk)


def _of_kind(kind: str) -> LoggedEvent:
    return LoggedEvent.objects.filter(kind=kind).latest("pk")


def _again(event: LoggedEvent) -> None:
    event.pk += 1000
    event.save(force_insert=True)


TAMPERINGS: dict[str, tuple[Callable[[], object], str]] = {
    "a lost event": (lambda: _of_kind("PodPhaseChanged").delete(), "1 numbers stand for no event"),
    "a lost phase": (lambda: _of_kind("JobPhaseChanged").delete(), "phase of it is completed in the row, running by"),
    "a broken chain": (
        lambda: LoggedEvent.objects.filter(kind="PodPhaseChanged", payload__new="running").first().delete(),
        "to succeeded; it was",
    ),
    "a phase without an event": (lambda: Job.objects.update(phase="failed"), "is failed in the row, completed by"),
    "a counter": (lambda: Job.objects.update(retry_count=7), "retry_count of it is 7 in the row, 0 by the log"),
    "a time": (lambda: Job.objects.update(finished_at=None), "finished_at of it is nothing in the row"),
    "a pod's node": (lambda: Pod.objects.update(node="moon"), "node of worker-0 (attempt 1) is moon in the row"),
    "a lost pod": (lambda: Pod.objects.filter(index=1).delete(), "tells of worker-1 (attempt 1), which has no row"),
    "a lost job": (lambda: Job.objects.all().delete(), "and there is no such row"),
    "a lost story": (
        lambda: LoggedEvent.objects.filter(subject__startswith="job:").delete(),
        "should hold 1 JobSubmitted",
    ),
    "a pod out of nowhere": (lambda: LoggedEvent.objects.filter(kind="PodCreated").delete(), "which was never created"),
    "a submission twice": (lambda: _again(_of_kind("JobSubmitted")), "should hold 1 JobSubmitted, and it holds 2"),
    "a pod made twice": (lambda: _again(_of_kind("PodCreated")), "creates worker-1 (attempt 1) once more"),
    "a pod bound twice": (lambda: _again(_of_kind("PodBound")), "binds worker-1 (attempt 1), which was succeeded"),
    "a deletion that is not told": (lambda: Job.objects.update(deleted_at=clock.now()), "should hold 1 JobDeleted"),
}


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_each_contradiction_of_log_and_rows_is_reported(finished: Job) -> None:
    assert rows.findings() == []
    for name, (tamper, words) in TAMPERINGS.items():
        with transaction.atomic():
            tamper()
            found = rows.findings()
            transaction.set_rollback(True)
        assert any(words in sentence for sentence in found), (name, found)
    assert rows.findings() == []


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_replica_with_two_live_pods_is_reported(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], seconds=600)
    world.reconcile_until(lambda: phase(job) == "running")
    pod = job.pods.get()
    pod.pk, pod.attempt = None, 2
    pod.save()
    assert any("worker-0 has 2 places at one time" in sentence for sentence in rows.findings())


def test_pods_left_over_or_missing_at_the_backend_are_reported(world: World, finished: Job) -> None:
    backend = backend_of(world.cluster)
    assert findings() == []
    long = submit(world, "long", ["sleep", "60"], seconds=600)
    world.reconcile_until(lambda: phase(long) == "running")
    pod = Pod.objects.select_related("job").get(job=long)
    assert findings() == []

    Pod.objects.filter(pk=pod.pk).update(phase="succeeded")
    assert any("is at work, though by its row it succeeded" in sentence for sentence in findings())
    Pod.objects.filter(pk=pod.pk).update(phase="running")

    second = order_of(long, Pod(job=long, task="worker", index=0, attempt=2, address=pod.address, node=pod.node), {})
    start_pod(backend, second)
    world.backend_until(lambda: len(backend.inventory().alive) == 2)
    found = "\n".join(findings())
    assert "worker-0 (attempt 2) of job" in found
    assert "2 attempts of worker-0" in found

    backend.remove(long.uid.hex)
    assert any("is running by its row, and nothing of it is there" in sentence for sentence in findings())


def test_what_remains_of_deleted_jobs_is_reported(world: World, finished: Job) -> None:
    services.delete(finished, user=world.alice, now=clock.now())
    Job.objects.update(deleted_at=clock.now() - timedelta(hours=1))
    assert any("what is attached to it does not go" in sentence for sentence in findings())
    world.reconcile_until(lambda: Job.objects.get().cleaned_at is not None)
    assert findings() == []
    Job.objects.update(logs_purged_at=clock.now())
    assert any("though they were purged" in sentence for sentence in findings())
    Job.objects.all().delete()
    assert any("there is no row of it" in sentence for sentence in findings())


def test_audit_command_prints_findings_and_exits_with_1(world: World, finished: Job) -> None:
    output = StringIO()
    call_command("audit", stdout=output)
    assert "All is well" in output.getvalue()
    Job.objects.update(retry_count=3)
    with pytest.raises(CommandError, match="Findings: 1") as refusal:
        call_command("audit", stdout=output)
    assert refusal.value.returncode == 1
    assert "retry_count of it is 3 in the row" in output.getvalue()
