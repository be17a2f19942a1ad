"""A job that cannot be processed holds itself only: the other jobs of its cluster go on, and it is retried later."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, spec, submit
from tests.controller.test_many_jobs import Cost
from tests.support.examples import examples

from hekla.apps.clusters.leases import LeaseLost
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import facts, services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import BackendError
from hekla.controller import pods
from hekla.controller.controllers import controllers
from hekla.domain.errors import Invalid
from hekla.domain.frameworks import load_frameworks
from hekla.domain.policies import LifecycleAction
from hekla.domain.stored_specs import read_leniently
from hekla.lib import clock
from hekla.scheduling.job_faults import JobFaults

JOBS = examples(1000)
GONE = {"gone": []}
"""Plugins that are not installed."""


def damage(job: Job, **changes: Any) -> None:
    """Change the stored spec, as an upgrade that no longer accepts it would."""
    stored = Job.objects.get(pk=job.pk).spec
    Job.objects.filter(pk=job.pk).update(spec={**stored, **changes})
    facts._cached_spec.cache_clear()
    controllers.reset()


def repair(job: Job) -> None:
    stored = Job.objects.get(pk=job.pk).spec
    Job.objects.filter(pk=job.pk).update(spec={name: value for name, value in stored.items() if name != "plugins"})


def reason(job: Job) -> tuple[str, str]:
    waiting = Job.objects.get(pk=job.pk).waiting
    return (waiting[0]["code"], waiting[0].get("text", "")) if waiting else ("", "")


def later(monkeypatch: pytest.MonkeyPatch, **by: float) -> None:
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(**by))


def test_job_with_an_uninstalled_plugin_holds_itself_only(simulated: World, client: Client) -> None:
    broken, good = submit(simulated, "broken", ["true"]), submit(simulated, "good", ["true"], seconds=600)
    damage(broken, plugins=GONE)
    simulated.reconcile_until(lambda: phase(good) == "running")
    assert (phase(broken), reason(broken)[0]) == ("pending", "spec_not_valid")
    assert "Unknown plugin “gone”" in reason(broken)[1]
    controllers.reconcile(simulated.cluster)
    assert LoggedEvent.objects.filter(kind="JobUnschedulable", subject=f"job:{broken.uid}").count() == 1
    client.force_login(simulated.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(f"/jobs/{broken.uid}/").content.decode()
    assert "The stored settings of this job are no longer valid (plugins.gone: Unknown plugin “gone”" in page
    assert client.get("/jobs/").status_code == 200
    services.command(broken, LifecycleAction.ABORT_JOB, user=simulated.alice, now=clock.now())
    simulated.reconcile_until(lambda: phase(broken) == "aborted")


def test_job_is_scheduled_after_the_back_off_once_its_spec_is_valid_again(
    simulated: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(simulated, "broken", ["true"], seconds=600)
    damage(job, plugins=GONE)
    controllers.reconcile(simulated.cluster)
    repair(job)
    controllers.reconcile(simulated.cluster)
    assert phase(job) == "pending"
    later(monkeypatch, seconds=31)
    simulated.reconcile_until(lambda: phase(job) == "running")
    assert reason(job) == ("", "")


def test_running_pods_of_a_broken_job_keep_their_resources_and_end(simulated: World) -> None:
    job = submit(simulated, "long", ["true"], cpu="1500", seconds=3)
    simulated.reconcile_until(lambda: phase(job) == "running")
    damage(job, plugins=GONE)
    rival = submit(simulated, "rival", ["true"], cpu="1000", seconds=600)
    controllers.reconcile(simulated.cluster)
    assert not Pod.objects.filter(job=rival).exclude(node="").exists()
    assert reason(job)[0] == "spec_not_valid"
    simulated.reconcile_until(lambda: phase(job) == "completed" and phase(rival) == "running")


def test_job_whose_plugin_fails_at_the_start_holds_itself_only(
    simulated: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = submit(simulated, "broken", ["true"], seconds=600)
    real, tries = pods.settings_for, []

    def settings_for(job_spec, *args, **kwargs):
        if job_spec.name == "broken":
            tries.append(job_spec)
            raise RuntimeError("no such host")
        return real(job_spec, *args, **kwargs)

    monkeypatch.setattr(pods, "settings_for", settings_for)
    good = submit(simulated, "good", ["true"], seconds=600)
    simulated.reconcile_until(lambda: phase(good) == "running" and reason(broken)[0] == "job_fault")
    assert reason(broken)[1] == "RuntimeError: no such host"
    controllers.reconcile(simulated.cluster)
    assert len(tries) == 1
    monkeypatch.setattr(pods, "settings_for", real)
    later(monkeypatch, seconds=31)
    simulated.reconcile_until(lambda: phase(broken) == "running")


@pytest.mark.parametrize("step", ["sync", "observe"])
def test_job_whose_rows_cannot_be_processed_holds_itself_only(
    simulated: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    broken, real = submit(simulated, "broken", ["true"], seconds=1), getattr(services, step)

    def act(cluster: int, epoch: int, job: Any, *args: Any, **kwargs: Any) -> bool:
        if job in (broken.pk, broken.uid):
            raise KeyError("worker")
        return real(cluster, epoch, job, *args, **kwargs)

    monkeypatch.setattr(services, step, act)
    good = submit(simulated, "good", ["true"], seconds=600)
    simulated.reconcile_until(lambda: phase(good) == "running" and reason(broken)[0] == "job_fault")
    monkeypatch.setattr(services, step, real)
    later(monkeypatch, seconds=31)
    simulated.reconcile_until(lambda: phase(broken) == "completed")


def _cost(world: World, prefix: str, broken: int) -> tuple[int, int]:
    """Submit many jobs, some of them broken. Returns reconciliations and statements until the others have started."""
    specs = [spec(f"{prefix}-{number}", ["true"], cpu="500m", seconds=1e6) for number in range(JOBS)]
    jobs = services.submit_many(specs=specs, tenant=world.tenant, user=world.alice, now=clock.now())
    for job in jobs[JOBS // 2 : JOBS // 2 + broken]:
        damage(job, plugins=GONE)
    bound = Pod.objects.filter(job__in=[job.pk for job in jobs]).exclude(node="")
    cost, rounds = Cost(), 0
    while bound.count() < JOBS - broken:
        rounds += 1
        assert rounds < 10
        with connection.execute_wrapper(cost):
            controllers.reconcile(world.cluster)
    Job.objects.filter(pk__in=[job.pk for job in jobs]).delete()
    controllers.reset()
    return rounds, cost.statements


def test_one_broken_job_among_many_does_not_slow_down_the_others(simulated: World) -> None:
    rounds, statements = _cost(simulated, "sound", broken=0)
    rounds_with_one, statements_with_one = _cost(simulated, "broken", broken=1)
    assert rounds_with_one == rounds
    assert statements_with_one <= statements + max(5, 0.02 * statements)  # renewals of the lease depend on the time


def test_back_off_doubles_until_the_job_changes() -> None:
    faults, now, job = JobFaults(), clock.now(), Job(pk=1, revision=1)
    delays = []
    for _ in range(3):
        fault = faults.add(job, "sync", "broken", now)
        delays.append((fault.retry_at - now).total_seconds())
        assert faults.release_due(fault.retry_at - timedelta(seconds=1)) == []
        now = fault.retry_at
        assert faults.release_due(now) == [1]
    assert delays == [30, 60, 120]
    job.revision = 2
    assert faults.add(job, "sync", "broken", now).retry_at == now + timedelta(seconds=30)


@pytest.mark.parametrize("error", [BackendError("away"), OperationalError("away"), LeaseLost("away")])
def test_errors_of_backend_database_and_lease_are_no_fault_of_a_job(error: Exception) -> None:
    faults, job = JobFaults(), Job(pk=1)

    def fail() -> bool:
        raise error

    with pytest.raises(type(error)):
        faults.attempt(job, "sync", fail, clock.now())
    assert faults.of(job) is None


def test_lenient_reading_keeps_what_is_valid_by_itself() -> None:
    document = {
        "name": "a",
        "max_retry": 10**9,
        "min_success": 1,
        "new_field": 1,
        "plugins": GONE,
        "tasks": [{"name": "w", "replicas": 2, "command": [], "resources": {"cpu": "2", "memory": "much"}}, "odd"],
    }
    found = read_leniently(document, "a")
    assert (found.max_retry, found.min_success, found.plugins) == (3, 1, {})
    assert [(task.name, task.replicas, task.resources) for task in found.tasks] == [("w", 2, {"cpu": "2"})]
    assert read_leniently(None, "b").tasks == ()


def test_spec_of_a_broken_job_cannot_be_stored_again(simulated: World) -> None:
    job = submit(simulated, "broken", ["true"])
    assert facts.valid_spec(job).name == "broken"
    damage(job, plugins=GONE)
    job = Job.objects.get(pk=job.pk)
    with pytest.raises(Invalid, match="gone"):
        services.set_priority(job, 5, user=simulated.alice, now=clock.now())
    assert Job.objects.get(pk=job.pk).spec["plugins"] == GONE


def test_plugin_that_raises_while_its_arguments_are_checked_is_a_fault_of_the_job(
    simulated: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, good = submit(simulated, "broken", ["true"], plugins={"env": []}), submit(simulated, "good", ["true"])
    facts._cached_spec.cache_clear()

    def read(*_args: Any) -> Callable[[], None]:
        raise RuntimeError("bad plugin")

    monkeypatch.setattr(type(load_frameworks()["env"]), "read", read)
    simulated.reconcile_until(lambda: phase(good) == "completed")
    assert reason(broken) == ("spec_not_valid", "RuntimeError: bad plugin")
