"""Volumes of external pods: pods run where their volumes can be reached, and claims are bound before pods."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller.conftest import SIZE, World
from tests.controller.external_pods import (
    condition,
    create_pod,
    external_namespace,
    long_patience,
    phase_of,
    pod,
    shared,
)
from tests.controller.test_volume_claims import SELECTED, Storage
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.backends.kubernetes.external_pod_state import parse_external_pod
from hekla.controller import audit
from hekla.domain.phases import JobPhase
from hekla.lib import clock

__all__ = ["external_namespace", "long_patience", "shared"]


@pytest.fixture
def storage(shared: World, small_cluster: ControlPlane, external_namespace: str) -> Iterator[Storage]:
    """Two nodes, and classes of volumes. Claims are in the namespace of the external pods."""
    labels = shared.cluster.config["node_labels"]
    more = small_cluster.add_nodes(1, allocatable=SIZE, labels=labels)
    clusters.change(
        shared.cluster, {"config": {**shared.cluster.config, "storage": True}}, actor=PLATFORM, now=clock.now()
    )
    shared.cluster.refresh_from_db()
    ((key, value),) = labels.items()
    found = small_cluster.request("GET", f"/api/v1/nodes?labelSelector={key}={value}")["items"]
    made = Storage(small_cluster, external_namespace, sorted(one["metadata"]["name"] for one in found))
    yield made
    made.remove()
    small_cluster.remove_nodes(more)


def mounting(name: str, *claims: str) -> dict[str, Any]:
    return pod(name, volumes=[{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims])


@pytest.mark.kubernetes
def test_external_pods_run_where_their_volumes_are(
    shared, small_cluster: ControlPlane, external_namespace, storage: Storage
) -> None:
    volume = storage.add_volume("one", storage.nodes[1])
    storage.add_claim("data", storage.local)
    create_pod(small_cluster, external_namespace, mounting("near", "data"))
    create_pod(small_cluster, external_namespace, mounting("late", "new", "data"))
    shared.reconcile_until(lambda: phase_of("near") == JobPhase.RUNNING)
    assert Pod.objects.get(job__name="near").node == storage.nodes[1]
    claim = storage.claims()["data"]
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == (volume, "Bound")
    shared.reconcile_until(lambda: "volume claim not found" in condition(small_cluster, external_namespace, "late"))

    storage.add_claim("new", storage.disks)

    def runs() -> bool:
        storage.provision()
        return phase_of("late") == JobPhase.RUNNING

    shared.reconcile_until(runs)
    assert Pod.objects.get(job__name="late").node == storage.nodes[1]
    assert storage.claims()["new"]["metadata"]["annotations"][SELECTED] == storage.nodes[1]
    assert audit.findings() == []


def test_claims_of_a_pod_are_read_within_limits() -> None:
    def parsed(*volumes: dict[str, Any]) -> Any:
        found = pod("one", volumes=list(volumes))
        found["metadata"] |= {"uid": "u", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return parse_external_pod(found)

    claims = [{"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"c{number}"}} for number in range(101)]
    assert parsed({"name": "tmp", "emptyDir": {}}, {"name": "own", "ephemeral": {}}).volume_claims == []
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    assert parsed(own, claims[0], claims[0]).volume_claims == ["one-own", "c0"]
    assert not parsed(*claims[:100]).obstacle
    assert "more than 100 claims" in parsed(*claims).obstacle
