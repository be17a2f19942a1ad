"""The threads that wait for news from clusters."""

from datetime import timedelta

import pytest
from tests.controller.conftest import World

from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.jobs import services
from hekla.controller import watcher
from hekla.controller.cluster_controller import ClusterController
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


def test_watcher_uses_the_current_configuration(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Cluster] = []
    own = watcher.ClusterWatcher()

    class Quiet:
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


def submit(world: World) -> None:
    spec = JobSpec.parse({"name": "one", "queue": "default", "tasks": [{"name": "main", "command": ["true"]}]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_cluster_without_a_lease_holder_is_due(simulated: World) -> None:
    assert watcher.is_due(simulated.cluster)
    leases.take(simulated.cluster, "another", now=clock.now() - 2 * leases.LIFETIME)
    assert watcher.is_due(simulated.cluster)


def test_cluster_with_another_holder_or_paused_is_not_due(simulated: World) -> None:
    leases.take(simulated.cluster, "another", now=clock.now() + timedelta(hours=1))
    submit(simulated)
    assert not watcher.is_due(simulated.cluster)
    Lease.objects.all().delete()
    simulated.cluster.is_paused = True
    assert not watcher.is_due(simulated.cluster)


def test_cluster_with_work_is_due_and_an_idle_one_keeps_its_lease(simulated: World) -> None:
    leases.take(simulated.cluster, identity(), now=clock.now() - timedelta(seconds=3))
    before = Lease.objects.get()
    assert not watcher.is_due(simulated.cluster)
    renewed = Lease.objects.get()
    assert (renewed.epoch, renewed.holder) == (before.epoch, before.holder)
    assert renewed.expires_at > before.expires_at
    submit(simulated)
    assert watcher.is_due(simulated.cluster)


def test_stalled_reconciliation_loses_its_lease(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    leases.take(simulated.cluster, identity(), now=clock.now() - timedelta(seconds=3))
    before = Lease.objects.get()
    monkeypatch.setattr(ClusterController, "_reconcile", lambda _self, cluster: watcher.is_due(cluster))
    controllers.reconcile(simulated.cluster)
    assert Lease.objects.get().expires_at == before.expires_at
