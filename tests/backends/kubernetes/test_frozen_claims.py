"""Working folders that outlive their pods on Kubernetes: claims, with the same image for the pod that continues."""

import dataclasses
from collections.abc import Callable

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.kubernetes.test_volumes import OUT, claims, volumes, wait_until_empty
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import PodKey, PodOrder
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.phases import PodPhase

KEY = PodKey("a" * 32, "worker", 0, 1)
FAILED = PodOrder(KEY, "n1", ("python", "train.py"), "s1", image="trainer:3", freezes=True, has_peers=False)


@pytest.fixture
def cloud(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


def names(plane: ControlPlane, namespace: str) -> list[str]:
    return sorted(one["metadata"]["name"] for one in claims(plane, namespace))


def test_pod_that_continues_mounts_the_claims_of_the_failed_one_with_its_image() -> None:
    config = KubernetesConfig(work_claim_size="20Gi", work_claim_class="fast")
    manifests = Manifests("c1", config)
    failed = dataclasses.replace(FAILED, **volumes(out=OUT))
    made = {claim["metadata"]["name"]: claim["spec"] for _kind, claim in manifests.shared(failed)}
    assert made[f"work-{KEY.name}"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "20Gi"}},
        "storageClassName": "fast",
    }
    key = PodKey("b" * 32, "worker", 0, 1)
    debug = dataclasses.replace(failed, key=key, command=("sh",), freezes=False, frozen=KEY)
    assert list(manifests.shared(debug)) == []
    pods = [manifests.pod(order)["spec"] for order in (failed, debug)]
    assert pods[0]["volumes"] == pods[1]["volumes"]
    assert pods[0]["volumes"][0] == {"name": "work", "persistentVolumeClaim": {"claimName": f"work-{KEY.name}"}}
    assert pods[0]["securityContext"]["fsGroup"] == 1000
    assert [pod["containers"][0]["image"] for pod in pods] == ["trainer:3", "trainer:3"]
    assert pods[0]["containers"][0]["volumeMounts"] == pods[1]["containers"][0]["volumeMounts"]


def test_other_pods_have_no_claim() -> None:
    manifests = Manifests("c1", KubernetesConfig())
    usual = dataclasses.replace(FAILED, freezes=False)
    assert list(manifests.shared(usual)) == []
    assert manifests.pod(usual)["spec"]["volumes"] == [{"name": "work", "emptyDir": {}}]


@pytest.mark.kubernetes
def test_claim_stays_after_a_failure_until_it_is_released(cloud, granted_namespace, small_cluster) -> None:
    bad = dataclasses.replace(cloud.order(script="exit 1", exit_code=1), freezes=True)
    good = dataclasses.replace(cloud.order(1), freezes=True)
    keys = [cloud.started(order) for order in (bad, good)]
    assert [cloud.ended(key).phase for key in keys] == [PodPhase.FAILED, PodPhase.SUCCEEDED]
    cloud.backend.forget(keys)
    left = f"work-{bad.key.name}"
    wait_until_empty(lambda: [name for name in names(small_cluster, granted_namespace) if name != left])
    assert cloud.backend.frozen.measure(bad.key) == 10 * 2**30
    debug = dataclasses.replace(cloud.long(job="debug"), frozen=bad.key)
    assert cloud.until(cloud.started(debug), PodPhase.RUNNING)
    assert names(small_cluster, granted_namespace) == [left]
    cloud.backend.remove("debug")
    assert names(small_cluster, granted_namespace) == [left]
    cloud.backend.frozen.release(bad.key)
    cloud.backend.frozen.release(bad.key)
    wait_until_empty(lambda: names(small_cluster, granted_namespace))
    assert cloud.backend.frozen.measure(bad.key) == 0


@pytest.mark.kubernetes
def test_next_attempt_and_removal_delete_claims(cloud, granted_namespace, small_cluster) -> None:
    first = dataclasses.replace(cloud.order(script="exit 1", exit_code=1), freezes=True)
    first = dataclasses.replace(first, key=dataclasses.replace(first.key, attempt=1))
    cloud.ended(cloud.started(first))
    cloud.backend.forget([first.key])
    assert names(small_cluster, granted_namespace) == [f"work-{first.key.name}"]
    second = dataclasses.replace(cloud.long(), freezes=True)
    second = dataclasses.replace(second, key=dataclasses.replace(second.key, attempt=2))
    cloud.started(second)
    wait_until_empty(lambda: [name for name in names(small_cluster, granted_namespace) if "-0-1" in name])
    assert names(small_cluster, granted_namespace) == [f"work-{second.key.name}"]
    cloud.backend.remove("job")
    wait_until_empty(lambda: names(small_cluster, granted_namespace))
