"""Deletion of jobs: after a crash at any step, nothing is left over and nothing was done twice."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit
from tests.support import auditor
from tests.support.examples import EVERY

from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Tenant
from hekla.backends.base import BackendError, UnknownPod
from hekla.backends.local import removal as local_removal
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import Refused
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

FIRST = {kind: 1 + at % EVERY for at, kind in enumerate(("local", "simulated", "kubernetes"))}
"""The step of the first crash. The kinds of clusters share the steps."""
STRIDE = {"local": EVERY**2, "simulated": EVERY, "kubernetes": EVERY}
"""The distance of the steps that are tried: a local cluster has many, one for each file that it removes."""
WRITES_LOG_AND_FILE = ["sh", "-c", "echo said; touch left"]


class Crash(DatabaseError):
    """The process died."""


class Crashes:
    """Lets the process die before or after its n-th side effect: a commit or a call of the backend."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, world: World) -> None:
        self._left: int | None = None
        self._has_died = False
        self._wrap(monkeypatch, BaseDatabaseWrapper, "commit")
        backend = backend_of(world.cluster)
        for name in ("remove", "remove_logs", "forget"):
            self._wrap(monkeypatch, type(backend), name)
        self._wrap_stops(monkeypatch, type(backend.runner))
        for name in ("delete", "remove_all_but_log", "remove_leftovers"):
            self._wrap(monkeypatch, local_removal, name)

    def at(self, step: int, do: Callable[[], None]) -> bool:
        """Runs `do` and dies at this step. Returns whether it came that far, also if a part that may fail did."""
        self._left, self._has_died = step, False
        try:
            do()
        except Crash:
            pass
        finally:
            self._left = None
        return self._has_died

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self._step()
            answer = real(*args, **kwargs)
            self._step()
            return answer

        monkeypatch.setattr(owner, name, wrapped)

    def _wrap_stops(self, monkeypatch: pytest.MonkeyPatch, runner: Any) -> None:
        real = runner.stop_many

        def stop_many(*args: Any, **kwargs: Any) -> Iterator[Any]:
            self._step()
            for stopped in real(*args, **kwargs):
                self._step()
                yield stopped

        monkeypatch.setattr(runner, "stop_many", stop_many)

    def _step(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self._has_died = True
                raise Crash


@pytest.fixture
def crashes(world: World, monkeypatch: pytest.MonkeyPatch) -> Crashes:
    return Crashes(monkeypatch, world)


def finished(world: World, name: str, **more: Any) -> Job:
    job = submit(world, name, WRITES_LOG_AND_FILE, replicas=2, seconds=0.1, **more)
    world.reconcile_until(lambda: phase(job) == "completed")
    return job


def delete(world: World, job: Job) -> None:
    services.delete(job, user=world.alice, now=clock.now())


def row(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def is_cleaned(job: Job) -> bool:
    return row(job).cleaned_at is not None


def event_counts(job: Job) -> Counter[str]:
    return Counter(LoggedEvent.objects.filter(subject=f"job:{job.uid}").values_list("kind", flat=True))


def age(days: float) -> None:
    """Moves all deletions this many days into the past."""
    for job in Job.objects.exclude(deleted_at=None):
        Job.objects.filter(pk=job.pk).update(deleted_at=job.deleted_at - timedelta(days=days))


@pytest.mark.every_kind
def test_deletion_survives_a_crash_at_every_step(world: World, crashes: Crashes) -> None:
    def delete_and_collect(job: Job) -> None:
        if row(job).deleted_at is None:
            delete(world, job)
        controllers.reconcile(world.cluster)

    gone, step, crashed = [], FIRST[world.cluster.kind], True
    while crashed:
        job = finished(world, "again")
        crashed = crashes.at(step, lambda job=job: delete_and_collect(job))
        step += STRIDE[world.cluster.kind]
        controllers.reset()
        if crashed:
            delete_and_collect(job)
        world.reconcile_until(lambda job=job: is_cleaned(job))
        gone.append(job)
    assert step > 8
    for job in gone:
        assert (event_counts(job)["JobDeleted"], event_counts(job)["JobCleanedUp"]) == (1, 1)
    found = backend_of(world.cluster).inventory()
    assert (found.alive, found.present, found.logged) == (set(), set(), {job.uid.hex for job in gone})
    auditor.audit()


@pytest.mark.every_kind
def test_purging_survives_a_crash_at_every_step(world: World, crashes: Crashes) -> None:
    """Logs are purged first, then the history. Each purge is logged once."""
    Tenant.objects.update(log_days=0, history_days=1)
    tries, step, crashed = 0, FIRST[world.cluster.kind], True
    while crashed:
        job = finished(world, "again")
        delete(world, job)
        world.reconcile_until(lambda job=job: is_cleaned(job))
        age(days=1)
        controllers.reset()
        crashed = crashes.at(step, lambda: controllers.reconcile(world.cluster))
        tries, step = tries + 1, step + STRIDE[world.cluster.kind]
        controllers.reset()
        controllers.reconcile(world.cluster)
        assert not Job.objects.filter(pk=job.pk).exists()
        assert event_counts(job) == {}
    assert step > 6
    batches = [event.payload["jobs"] for event in LoggedEvent.objects.filter(kind="HistoryPurged")]
    assert batches == [1] * tries
    assert sum(event.payload["jobs"] for event in LoggedEvent.objects.filter(kind="LogsPurged")) == tries
    assert event_log.lost() == 0
    assert not backend_of(world.cluster).inventory().logged
    auditor.audit()


def test_deleted_job_keeps_its_history_and_logs_for_their_retention(world: World) -> None:
    Tenant.objects.update(log_days=2, history_days=5)
    job = finished(world, "kept")
    delete(world, job)
    world.reconcile_until(lambda: is_cleaned(job))
    pod, backend = Pod.objects.filter(job=job).select_related("job")[0], backend_of(world.cluster)
    assert selectors.get(job.uid, world.alice) == job
    assert job not in selectors.visible_to(world.alice)
    assert job in selectors.deleted_for(world.alice)

    def look(days: float) -> None:
        age(days)
        controllers.reset()
        controllers.reconcile(world.cluster)

    look(1.9)
    assert backend.logs(key_of(pod), offset=0, limit=10).data
    look(0.2)
    with pytest.raises(UnknownPod):
        backend.logs(key_of(pod), offset=0, limit=10)
    assert event_counts(job)["JobSubmitted"] == 1
    assert row(job).logs_purged_at
    look(2.8)
    assert event_counts(job)["JobSubmitted"] == 1
    look(0.2)
    assert not Job.objects.exists()
    assert not LoggedEvent.objects.filter(subject=f"job:{job.uid}").exists()


def test_each_tenant_has_its_own_retention(world: World) -> None:
    from hekla.apps.event_log.services import PLATFORM
    from hekla.apps.tenancy import services as tenancy

    Tenant.objects.update(log_days=0, history_days=1)
    other = tenancy.create(slug="other", name="Other", actor=PLATFORM, now=clock.now())
    mine, other_job = finished(world, "mine"), finished(world, "theirs")
    Job.objects.filter(pk=other_job.pk).update(tenant=other)
    for job in (mine, other_job):
        Job.objects.filter(pk=job.pk).update(deleted_at=clock.now() - timedelta(days=20))
    controllers.reset()
    controllers.reconcile(world.cluster)
    assert list(Job.objects.all()) == [other_job]
    assert row(other_job).logs_purged_at is None


def test_job_is_deleted_after_its_time_to_live(world: World) -> None:
    job, stays = finished(world, "short", ttl_seconds_after_finished=1), finished(world, "stays")
    world.reconcile_until(lambda: is_cleaned(job))
    assert row(job).deleted_at >= row(job).finished_at + timedelta(seconds=1)
    assert row(stays).deleted_at is None
    assert event_counts(job)["JobDeleted"] == 1


def test_live_pods_of_a_deleted_job_end_first(world: World) -> None:
    """A job can be over while one of its pods is in its grace period. Its row must not keep the resources for ever."""
    job = submit(world, "over", ["sleep", "60"], replicas=2, seconds=600)
    world.reconcile_until(lambda: phase(job) == "running")
    Job.objects.filter(pk=job.pk).update(phase="failed", finished_at=clock.now())
    delete(world, job)
    world.reconcile_until(lambda: is_cleaned(job))
    assert {pod.phase for pod in job.pods.all()} == {"failed"}
    assert event_counts(job)["PodStopRequested"] == 2
    assert not backend_of(world.cluster).inventory().present


def test_failed_removal_delays_no_other_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, other = finished(world, "stuck"), finished(world, "other")
    kind = type(backend_of(world.cluster))
    real, refuses = kind.remove, [True]

    def remove(self: Any, job: str, **more: Any) -> None:
        if job == stuck.uid.hex and refuses:
            raise BackendError("not now")
        real(self, job, **more)

    monkeypatch.setattr(kind, "remove", remove)
    delete(world, stuck)
    delete(world, other)
    world.reconcile_until(lambda: is_cleaned(other))
    assert not is_cleaned(stuck)
    refuses.clear()
    controllers.reset()
    world.reconcile_until(lambda: is_cleaned(stuck))


def test_labels_with_invalid_job_uids_are_ignored(world: World) -> None:
    """Whoever may create objects in a cluster can label them with anything."""
    odd = ["x", "", "0" * 31, "’; --"]
    assert selectors.gone_among(world.cluster.pk, present=odd, logged=odd) == []
    assert selectors.by_uids(world.cluster.pk, odd) == []


def test_deleted_job_cannot_be_resumed(world: World) -> None:
    job = submit(world, "long", ["sleep", "60"], seconds=600)
    world.reconcile_until(lambda: phase(job) == "running")
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")
    delete(world, job)
    delete(world, job)
    assert event_counts(job)["JobDeleted"] == 1
    with pytest.raises(Refused, match="deleted"):
        services.command(job, LifecycleAction.RESUME_JOB, user=world.alice, now=clock.now())
