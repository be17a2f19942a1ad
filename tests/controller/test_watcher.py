"""The threads that wait for clusters to stir."""

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


def test_a_cluster_is_watched_as_it_is_reached_now(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Cluster] = []
    own = watcher.ClusterWatcher()

    class Quiet:
        def wait(self, _timeout_seconds: float) -> bool:
            """Nothing stirs, but somebody changes the configuration."""
            Cluster.objects.update(config={"nodes": []})
            if len(seen) == 2:
                own.stop()
            return False

    def opened(cluster: Cluster) -> Quiet:
        seen.append(cluster)
        return Quiet()

    monkeypatch.setattr(watcher, "backend_of", opened)
    own.watch(simulated.cluster.pk)
    assert [cluster.config for cluster in seen] == [simulated.cluster.config, {"nodes": []}]


@pytest.mark.parametrize("is_turning", [False, True])
def test_what_stirs_while_the_cluster_is_turned_here_is_looked_at_afterwards_without_a_message(
    simulated: World, monkeypatch: pytest.MonkeyPatch, is_turning: bool
) -> None:
    asked: list[int] = []
    own = watcher.ClusterWatcher()

    class Stirring:
        def wait(self, _timeout_seconds: float) -> bool:
            own.stop()
            return True

    monkeypatch.setattr(watcher, "backend_of", lambda _cluster: Stirring())
    monkeypatch.setattr(watcher, "request_reconcile", asked.append)
    turned: list[Cluster] = []

    def reconcile(_self: ClusterController, cluster: Cluster) -> None:
        turned.append(cluster)
        if len(turned) == 1:
            own.watch(cluster.pk)

    monkeypatch.setattr(ClusterController, "_reconcile", reconcile)
    if is_turning:
        controllers.reconcile(simulated.cluster)
    else:
        own.watch(simulated.cluster.pk)
    assert (len(turned), asked) == ((2, []) if is_turning else (0, [simulated.cluster.pk]))


def submit(world: World) -> None:
    spec = JobSpec.parse({"name": "one", "queue": "default", "tasks": [{"name": "main", "command": ["true"]}]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_a_cluster_that_nobody_turns_is_due(simulated: World) -> None:
    assert watcher.is_due(simulated.cluster)
    leases.take(simulated.cluster, "another", now=clock.now() - 2 * leases.LIFETIME)
    assert watcher.is_due(simulated.cluster)


def test_a_cluster_that_another_turns_or_that_is_paused_is_not_due(simulated: World) -> None:
    leases.take(simulated.cluster, "another", now=clock.now() + timedelta(hours=1))
    submit(simulated)
    assert not watcher.is_due(simulated.cluster)
    Lease.objects.all().delete()
    simulated.cluster.is_paused = True
    assert not watcher.is_due(simulated.cluster)


def test_a_cluster_with_work_is_due_and_one_without_keeps_its_lease(simulated: World) -> None:
    leases.take(simulated.cluster, identity(), now=clock.now() - timedelta(seconds=3))
    taken = Lease.objects.get()
    assert not watcher.is_due(simulated.cluster)
    renewed = Lease.objects.get()
    assert (renewed.epoch, renewed.holder) == (taken.epoch, taken.holder)
    assert renewed.expires_at > taken.expires_at
    submit(simulated)
    assert watcher.is_due(simulated.cluster)


def test_a_turn_that_stands_still_loses_its_lease(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    leases.take(simulated.cluster, identity(), now=clock.now() - timedelta(seconds=3))
    taken = Lease.objects.get()
    monkeypatch.setattr(ClusterController, "_reconcile", lambda _self, cluster: watcher.is_due(cluster))
    controllers.reconcile(simulated.cluster)
    assert Lease.objects.get().expires_at == taken.expires_at
