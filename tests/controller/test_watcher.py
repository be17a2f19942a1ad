"""The threads that wait for news from clusters."""

import gc
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db.models.functions import Now
from tests.controller.conftest import World
from tests.controller.test_silent_server import kubeconfig
from tests.support.silent_server import silent_server

from hekla.apps.clusters import leases
from hekla.apps.clusters import services as services_of_clusters
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller import watcher
from hekla.controller.backends import backend_of
from hekla.controller.cluster_controller import ClusterController
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


def test_watcher_uses_the_current_configuration(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Cluster] = []
    own = watcher.ClusterWatcher()

    class Quiet:
        fault = ""

        def wait(self, _timeout_seconds: float) -> bool:
            """No news; meanwhile the configuration changes."""
            Cluster.objects.update(config={"nodes": []})
            if len(opened) == 2:
                own.stop()
            return False

    def open_backend(cluster: Cluster) -> Quiet:
        opened.append(cluster)
        return Quiet()

    monkeypatch.setattr(watcher, "backend_of", open_backend)
    own.watch(simulated.cluster.pk)
    assert [cluster.config for cluster in opened] == [simulated.cluster.config, {"nodes": []}]


@pytest.mark.parametrize("is_reconciling", [False, True])
def test_news_during_a_reconciliation_in_this_process_start_another_without_a_message(
    simulated: World, monkeypatch: pytest.MonkeyPatch, is_reconciling: bool
) -> None:
    requested: list[int] = []
    own = watcher.ClusterWatcher()

    class Busy:
        fault = ""

        def wait(self, _timeout_seconds: float) -> bool:
            own.stop()
            return True

    monkeypatch.setattr(watcher, "backend_of", lambda _cluster: Busy())
    monkeypatch.setattr(watcher, "request_reconcile", requested.append)
    reconciled: list[Cluster] = []

    def reconcile(_self: ClusterController, cluster: Cluster) -> None:
        reconciled.append(cluster)
        if len(reconciled) == 1:
            own.watch(cluster.pk)

    monkeypatch.setattr(ClusterController, "_reconcile", reconcile)
    if is_reconciling:
        controllers.reconcile(simulated.cluster)
    else:
        own.watch(simulated.cluster.pk)
    assert (len(reconciled), requested) == ((2, []) if is_reconciling else (0, [simulated.cluster.pk]))


def is_due(cluster: Cluster) -> bool:
    return watcher.is_due(selectors.watched(cluster.pk))


def submit(world: World) -> None:
    spec = JobSpec.parse({"name": "one", "queue": "default", "tasks": [{"name": "main", "command": ["true"]}]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_cluster_without_a_lease_holder_is_due(simulated: World) -> None:
    assert is_due(simulated.cluster)
    leases.take(simulated.cluster, "another", now=clock.now())
    Lease.objects.update(expires_at=Now())
    assert is_due(simulated.cluster)


def test_cluster_with_another_holder_or_paused_is_not_due(simulated: World) -> None:
    leases.take(simulated.cluster, "another", now=clock.now())
    submit(simulated)
    assert not is_due(simulated.cluster)
    Lease.objects.all().delete()
    Cluster.objects.update(is_paused=True)
    assert not is_due(simulated.cluster)


def test_cluster_with_work_is_due_and_an_idle_one_keeps_its_lease(simulated: World) -> None:
    controllers.reconcile(simulated.cluster)
    before = Lease.objects.get()
    assert not is_due(simulated.cluster)
    renewed = Lease.objects.get()
    assert (renewed.epoch, renewed.holder) == (before.epoch, before.holder)
    assert renewed.expires_at > before.expires_at
    submit(simulated)
    assert is_due(simulated.cluster)


def test_deleted_job_that_is_not_cleaned_is_work(simulated: World) -> None:
    submit(simulated)
    controllers.reconcile(simulated.cluster)
    Job.objects.update(phase="completed", finished_at=clock.now(), deleted_at=clock.now())
    Pod.objects.update(phase="succeeded")
    assert is_due(simulated.cluster)
    Job.objects.update(cleaned_at=clock.now())
    assert not is_due(simulated.cluster)


def test_holder_that_did_not_reconcile_for_long_is_due(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker may get every wake-up, and does nothing, because it does not hold the lease."""
    controllers.reconcile(simulated.cluster)
    assert not is_due(simulated.cluster)
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert is_due(simulated.cluster)


def test_stalled_reconciliation_loses_its_lease(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    leases.take(simulated.cluster, identity(), now=clock.now())
    before = Lease.objects.get()
    monkeypatch.setattr(ClusterController, "_reconcile", lambda _self, cluster: is_due(cluster))
    controllers.reconcile(simulated.cluster)
    assert Lease.objects.get().expires_at == before.expires_at


class Faulty:
    """A backend whose `wait` fails unexpectedly a few times."""

    fault = ""

    def __init__(self, failures: int, then: Callable[[], None]) -> None:
        self._failures, self._then = failures, then

    def wait(self, _timeout_seconds: float) -> bool:
        if self._failures == 0:
            self._then()
            return False
        self._failures -= 1
        raise KeyError("resourceVersion")


def test_unexpected_error_is_logged_and_recorded_and_does_not_end_the_watch(
    simulated: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watcher, "_FIRST_RETRY_SECONDS", 0.01)
    leases.take(simulated.cluster, identity(), now=clock.now())
    own, faults = watcher.ClusterWatcher(), []

    def end() -> None:
        faults.append(Lease.objects.get().fault)
        own.stop()

    backend = Faulty(2, end)
    monkeypatch.setattr(watcher, "backend_of", lambda _cluster: backend)
    own.watch(simulated.cluster.pk)
    assert faults == ["KeyError: 'resourceVersion'"]
    assert Lease.objects.get().fault == ""
    assert "Traceback" in caplog.text


def test_unexpected_error_of_a_reconciliation_is_recorded(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: ClusterController, cluster: Cluster) -> None:
        leases.take(cluster, identity(), now=clock.now())
        raise ValueError("no such thing")

    monkeypatch.setattr(ClusterController, "_reconcile", fail)
    with pytest.raises(ValueError, match="no such thing"):
        controllers.reconcile(simulated.cluster)
    own = watcher.ClusterWatcher()
    monkeypatch.setattr(watcher, "backend_of", lambda _cluster: Faulty(0, own.stop))
    own.watch(simulated.cluster.pk)
    assert Lease.objects.get().fault == "ValueError: no such thing"
    leases.take(simulated.cluster, identity(), now=clock.now())
    assert Lease.objects.get().fault == "ValueError: no such thing", "a renewal alone repairs nothing"


def test_search_for_clusters_survives_an_unexpected_error(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    own, looked = watcher.ClusterWatcher(), []

    def active_names() -> list[tuple[int, str]]:
        looked.append(1)
        if len(looked) == 1:
            raise RuntimeError("can't start new thread")
        own.stop()
        return []

    monkeypatch.setattr(watcher, "clusters", SimpleNamespace(active_names=active_names))
    monkeypatch.setattr(own._stop, "wait", lambda _seconds: None)
    own._watch_all()
    assert len(looked) == 2


def watch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("watch")]


def test_removed_cluster_leaves_no_thread_connection_or_cache(
    simulated: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated.cluster.is_paused = True
    Cluster.objects.update(is_paused=True)
    monkeypatch.setattr(watcher, "request_reconcile", lambda _cluster: None)
    (tmp_path / "kubeconfigs").mkdir()
    before, own = watch_threads(), watcher.ClusterWatcher()
    with silent_server() as url:
        (tmp_path / "kubeconfigs" / "one").write_text(kubeconfig(url, "one"))
        config = {"kubeconfig": "one"}
        cluster = services_of_clusters.create(
            name="one", kind="kubernetes", config=config, actor=PLATFORM, now=clock.now()
        )
        own.start()
        wait_until(lambda: len(watch_threads()) == len(before) + 3, "the search, the cluster and its pods")
        backend, controller = weakref.ref(backend_of(cluster)), weakref.ref(controllers.get(cluster.pk))
        services_of_clusters.remove(cluster, actor=PLATFORM, now=clock.now())
        wait_until(lambda: len(watch_threads()) == len(before) + 1, "the search")
        gc.collect()
        assert (backend(), controller()) == (None, None)
        own.stop()
        wait_until(lambda: len(watch_threads()) == len(before), "nothing")


def wait_until(holds: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_at, f"{what}: {watch_threads()}"
        time.sleep(0.05)
