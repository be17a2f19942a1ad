"""External pods that the cluster does not bind to the node of the decision: they are pending again, with the reason."""

from collections.abc import Callable

import pytest
from tests.controller.conftest import SIZE, World
from tests.controller.external_pods import (
    condition,
    create_pod,
    devices,
    external_namespace,
    long_patience,
    phase_of,
    pod,
    shared,
)
from tests.controller.test_device_claims import API as CLAIMS_API
from tests.controller.test_device_claims import add_slice, device
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.apps.jobs.models import Pod
from hekla.controller import audit, external_binds, external_pods
from hekla.controller.controllers import controllers
from hekla.domain.phases import JobPhase, PodPhase

__all__ = ["devices", "external_namespace", "long_patience", "shared"]
pytestmark = pytest.mark.kubernetes


@pytest.fixture
def decide_only(shared: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Reconciles until a pod has a node in its row, and stops before it is bound, as a controller that crashes."""

    def decide() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(external_pods, "bind_pods", lambda *_arguments, **_more: None)
            shared.reconcile_until(Pod.objects.filter(phase=PodPhase.BOUND).exists)

    return decide


def returns() -> list[str]:
    """The reasons for which pods returned to the engine."""
    found = LoggedEvent.objects.filter(kind="PodPhaseChanged", payload__new="pending")
    return [one.payload["message"] for one in found.order_by("id")]


def test_pod_whose_node_is_gone_before_the_bind_gets_another(
    shared, small_cluster: ControlPlane, external_namespace, decide_only
) -> None:
    create_pod(small_cluster, external_namespace, pod("moved"))
    decide_only()
    old = Pod.objects.get().node
    other = {"metadata": {"labels": {"hekla.dev/test": "another"}}}
    path, content_type = f"/api/v1/nodes/{old}", "application/merge-patch+json"
    small_cluster.request("PATCH", path, other, content_type=content_type)
    controllers.reset()  # the next one reads the nodes at once
    shared.reconcile_until(lambda: Pod.objects.get().phase == PodPhase.PENDING)
    more = small_cluster.add_nodes(1, allocatable=SIZE, labels=shared.cluster.config["node_labels"])
    try:
        controllers.reset()
        shared.reconcile_until(lambda: phase_of("moved") == JobPhase.RUNNING)
        assert [Pod.objects.get().node] == more
        assert returns() == [f"The node {old} is not part of the cluster any more."]
        lines = history.lines(list(LoggedEvent.objects.order_by("id")))
        assert any(f"could not be bound to {old}" in line.sentence for line in lines)
        assert audit.findings() == []
    finally:
        small_cluster.remove_nodes(more)


def test_pod_whose_device_is_gone_before_the_bind_waits_again(
    shared, small_cluster: ControlPlane, external_namespace, devices, decide_only, monkeypatch
) -> None:
    monkeypatch.setattr(external_binds, "GIVE_UP_SECONDS", 0.3)
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-card"}]
    create_pod(small_cluster, external_namespace, pod("owner", resourceClaims=claims))
    decide_only()
    small_cluster.request("DELETE", f"{CLAIMS_API}/resourceslices?fieldSelector=spec.nodeName={devices}")
    shared.reconcile_until(lambda: Pod.objects.get().phase == PodPhase.PENDING)
    shared.reconcile_until(lambda: "device" in condition(small_cluster, external_namespace, "owner"))
    assert Pod.objects.get().phase == PodPhase.PENDING
    add_slice(small_cluster, devices, device("gpu-1"))
    shared.reconcile_until(lambda: phase_of("owner") == JobPhase.RUNNING)
    assert set(returns()) == {f"The node {devices} has no free device for the claim “{_claim(small_cluster)}”."}
    assert audit.findings() == []


def _claim(plane: ControlPlane) -> str:
    found = plane.request("GET", f"{CLAIMS_API}/resourceclaims")["items"]
    return next(one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith("owner-gpu"))
