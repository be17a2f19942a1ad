"""The threads that wait for clusters to stir."""

from threading import Event

import pytest
from tests.controller.conftest import World

from hekla.apps.clusters.models import Cluster
from hekla.controller import turns, watch


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
