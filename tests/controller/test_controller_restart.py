"""A restarted controller: what it does before its backend has reported all pods, and what it defers."""

from typing import NoReturn

import pytest
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit
from tests.support import auditor

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision
from hekla.backends.base import BackendError
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.decisions import only_places
from hekla.domain.phases import GangPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock


@pytest.fixture
def no_observations(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend fails to report its pods."""

    def observe(*_: object) -> NoReturn:
        raise BackendError("It takes too long")

    monkeypatch.setattr(type(backend_of(world.cluster)), "observe", observe)


def test_pending_pods_are_placed_before_pods_are_observed(world: World, request) -> None:
    running = submit(world, "running", ["sleep", "100"], replicas=2, seconds=100)
    world.reconcile_until(lambda: phase(running) == "running")
    fits = submit(world, "fits", ["sleep", "100"], replicas=2, seconds=100)
    waits = submit(world, "waits", ["sleep", "100"], replicas=2, seconds=100)
    request.getfixturevalue("no_observations")
    controllers.reset()
    controllers.reconcile(world.cluster)
    assert {pod.phase for pod in fits.pods.all()} == {"bound"}
    assert not waits.pods.exclude(node="").exists()
    assert phase(running) == "running"


def test_abort_waits_until_pods_are_observed(world: World, request) -> None:
    """A pod that has ended by itself must not count as stopped."""
    job = submit(world, "ending", ["sleep", "100"], seconds=100)
    world.reconcile_until(lambda: phase(job) == "running")
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    last = LoggedEvent.objects.last()
    request.getfixturevalue("no_observations")
    controllers.reset()
    controllers.reconcile(world.cluster)
    assert not LoggedEvent.objects.filter(pk__gt=last.pk, subject=f"job:{job.uid}").exists()
    assert Pod.objects.get(job=job).phase == "running"


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_jobs_complete_if_every_reconciliation_is_by_a_new_controller(world: World) -> None:
    jobs = [submit(world, f"job-{number}", ["true"], replicas=number % 3 + 1, seconds=0.2) for number in range(8)]

    def done() -> bool:
        controllers.reset()
        return not Job.objects.exclude(phase="completed").exists()

    world.reconcile_until(done)
    assert {pod.attempt for job in jobs for pod in job.pods.all()} == {1}
    auditor.audit()


@pytest.mark.parametrize(
    ("decision", "is_placement"),
    [
        (JobDecision(1, 1, binds={1: "n"}), True),
        (JobDecision(1, 1, gang_phase=GangPhase.INQUEUE), True),
        (JobDecision(1, 1, binds={1: "n"}, gang_phase=GangPhase.RUNNING), True),
        (JobDecision(1, 1, binds={1: "n"}, evictions={2: EvictionReason("preempt")}), False),
        (JobDecision(1, 1, evictions={2: EvictionReason("reclaim")}), False),
        (JobDecision(1, 1, gang_phase=GangPhase.UNKNOWN), False),
        (JobDecision(1, 1), False),
    ],
)
def test_only_placements_are_applied_before_pods_are_observed(decision: JobDecision, is_placement: bool) -> None:
    assert only_places(decision) is is_placement
