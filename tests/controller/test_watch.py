"""The threads that wait for clusters to stir."""

from datetime import timedelta
from threading import Event

import pytest
from tests.controller.conftest import World

from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.jobs import services
from hekla.controller import turns, watch
from hekla.controller.holder import holder
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


def test_a_cluster_is_watched_as_it_is_reached_now(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Cluster] = []

    class Quiet:
        def wait(self, _timeout_seconds: float) -> bool:
            """Nothing stirs, but somebody changes the configuration."""
            Cluster.objects.update(config={"nodes": []})
            if len(seen) == 2:
                watch._stop.set()
            return False

    def opened(cluster: Cluster) -> Quiet:
        seen.append(cluster)
        return Quiet()

    monkeypatch.setattr(watch, "_stop", Event())
    monkeypatch.setattr(watch, "backend_of", opened)
    watch._watch(simulated.cluster.pk)
    assert [cluster.config for cluster in seen] == [simulated.cluster.config, {"nodes": []}]


@pytest.mark.parametrize("is_turning", [False, True])
def test_what_stirs_while_the_cluster_is_turned_here_is_looked_at_afterwards_without_a_message(
    simulated: World, monkeypatch: pytest.MonkeyPatch, is_turning: bool
) -> None:
    asked: list[int] = []

    class Stirring:
        def wait(self, _timeout_seconds: float) -> bool:
            watch._stop.set()
            return True

    monkeypatch.setattr(watch, "_stop", Event())
    monkeypatch.setattr(watch, "backend_of", lambda _cluster: Stirring())
    monkeypatch.setattr(watch, "request_turn", asked.append)
    turned: list[Cluster] = []

    def turn(cluster: Cluster, _keeper: turns.Keeper) -> None:
        turned.append(cluster)
        if len(turned) == 1:
            watch._watch(cluster.pk)

    monkeypatch.setattr(turns, "_turn", turn)
    if is_turning:
        turns.run(simulated.cluster)
    else:
        watch._watch(simulated.cluster.pk)
    assert (len(turned), asked) == ((2, []) if is_turning else (0, [simulated.cluster.pk]))


def submit(world: World) -> None:
    spec = JobSpec.parse({"name": "one", "queue": "default", "tasks": [{"name": "main", "command": ["true"]}]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_a_cluster_that_nobody_turns_is_due(simulated: World) -> None:
    assert watch._is_due(simulated.cluster)
    leases.take(simulated.cluster, "another", now=clock.now() - 2 * leases.LIFETIME)
    assert watch._is_due(simulated.cluster)


def test_a_cluster_that_another_turns_or_that_is_paused_is_not_due(simulated: World) -> None:
    leases.take(simulated.cluster, "another", now=clock.now() + timedelta(hours=1))
    submit(simulated)
    assert not watch._is_due(simulated.cluster)
    Lease.objects.all().delete()
    simulated.cluster.is_paused = True
    assert not watch._is_due(simulated.cluster)


def test_a_cluster_with_work_is_due_and_one_without_keeps_its_lease(simulated: World) -> None:
    leases.take(simulated.cluster, holder(), now=clock.now() - timedelta(seconds=3))
    taken = Lease.objects.get()
    assert not watch._is_due(simulated.cluster)
    renewed = Lease.objects.get()
    assert (renewed.epoch, renewed.holder) == (taken.epoch, taken.holder)
    assert renewed.expires_at > taken.expires_at
    submit(simulated)
    assert watch._is_due(simulated.cluster)


def test_a_turn_that_stands_still_loses_its_lease(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    leases.take(simulated.cluster, holder(), now=clock.now() - timedelta(seconds=3))
    taken = Lease.objects.get()
    monkeypatch.setattr(turns, "_turn", lambda cluster, _keeper: watch._is_due(cluster))
    turns.run(simulated.cluster)
    assert Lease.objects.get().expires_at == taken.expires_at
