"""The threads that wait for clusters to stir."""

from threading import Event

import pytest
from tests.controller.conftest import World

from hekla.apps.clusters.models import Cluster
from hekla.controller import watch


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
