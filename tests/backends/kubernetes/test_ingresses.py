"""Ports of jobs are reachable from outside of the cluster through ingresses, if the cluster has a domain."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import _grant, grant_in_namespace

from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes.api import ApiError
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.registry import open_backend
from hekla.domain.errors import Invalid
from hekla.domain.phases import PodPhase
from hekla.lib.clock import now

_INGRESS = {"domain": "jobs.example.org", "class_name": "nginx", "namespace": "ingress-nginx"}
_KINDS = {"ingresses": "networking.k8s.io/v1", "networkpolicies": "networking.k8s.io/v1", "services": "v1"}
_PORTS = {"board": 6006}


@pytest.fixture
def plane(small_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """With the ClusterRole for ports, not yet bound in any namespace."""
    _grant(small_cluster, "rights-ports.yaml")
    return small_cluster


@pytest.fixture
def without_permission(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    """A cluster whose console has no permission for ingresses."""
    cluster = make_cluster("kubernetes")
    cluster.config["ingress"] = _INGRESS
    cluster.backend = cluster.reopen()
    return cluster


@pytest.fixture
def cloud(plane: ControlPlane, without_permission: ClusterFixture) -> ClusterFixture:
    grant_in_namespace(plane, "rights-ports.yaml", without_permission.config["namespace"])
    return without_permission


def port_objects(plane: ControlPlane, cluster: ClusterFixture, kind: str) -> list[dict[str, Any]]:
    """The objects for ports, without those that every job has."""
    group = "api" if _KINDS[kind] == "v1" else "apis"
    listed = plane.request("GET", f"/{group}/{_KINDS[kind]}/namespaces/{cluster.config['namespace']}/{kind}")
    return [one for one in listed["items"] if one["metadata"]["name"].startswith("port-")]


@pytest.mark.kubernetes
def test_port_has_a_host_below_the_domain(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    (ingress,), (service,) = port_objects(plane, cloud, "ingresses"), port_objects(plane, cloud, "services")
    (rule,) = ingress["spec"]["rules"]
    assert (rule["host"], ingress["spec"]["ingressClassName"]) == ("job-board.jobs.example.org", "nginx")
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"number": 6006}}
    selector = {"hekla.dev/cluster": "c1", "hekla.dev/job": "job", "hekla.dev/task": "worker"}
    assert service["spec"]["selector"] == selector
    assert "tls" not in ingress["spec"]


@pytest.mark.kubernetes
def test_network_policy_allows_the_ingress_controller_to_that_port_only(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    (policy,) = port_objects(plane, cloud, "networkpolicies")
    outside, inside = policy["spec"]["ingress"]
    assert outside["ports"] == [{"protocol": "TCP", "port": 6006}]
    assert outside["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
    assert inside["from"] == [{"podSelector": {"matchLabels": {"hekla.dev/cluster": "c1", "hekla.dev/job": "job"}}}]


@pytest.mark.kubernetes
def test_host_has_tls_if_the_configuration_says_so(cloud, plane) -> None:
    cloud.config["ingress"] = {**_INGRESS, "tls": True}
    cloud.backend = cloud.reopen()
    cloud.started(cloud.long(ports=_PORTS))
    (ingress,) = port_objects(plane, cloud, "ingresses")
    assert ingress["spec"]["tls"] == [{"hosts": ["job-board.jobs.example.org"]}]


@pytest.mark.kubernetes
def test_pods_of_a_job_share_the_ingress_also_across_processes(cloud, plane) -> None:
    orders = [cloud.long(index, ports=_PORTS) for index in range(3)]
    assert [
        error for _order, error in cloud.backend.runner.start_many(orders[:2], heartbeat=lambda: None) if error
    ] == []
    cloud.start(orders[2], at=cloud.reopen())
    (ingress,), (service,) = port_objects(plane, cloud, "ingresses"), port_objects(plane, cloud, "services")
    (owner,) = ingress["metadata"]["ownerReferences"]
    assert owner["uid"] == service["metadata"]["uid"]


@pytest.mark.kubernetes
def test_missing_ingress_of_an_interrupted_start_is_created(cloud, plane, monkeypatch) -> None:
    order, first = cloud.long(ports=_PORTS), cloud.reopen()
    create = first.parts.client.create_once

    async def without_ingress(path: str, body: Any) -> Any:
        return None if path.endswith("/ingresses") else await create(path, body)

    monkeypatch.setattr(first.parts.client, "create_once", without_ingress)
    cloud.start(order, at=first)
    assert port_objects(plane, cloud, "ingresses") == []
    cloud.start(order)
    cloud.start(cloud.long(1, ports=_PORTS))
    assert len(port_objects(plane, cloud, "ingresses")) == 1


@pytest.mark.kubernetes
def test_ingress_is_removed_with_the_job(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    cloud.started(cloud.long(job="other", ports=_PORTS))
    assert len(port_objects(plane, cloud, "ingresses")) == 2
    cloud.backend.remove("job")
    plane.wait_until(lambda: len(port_objects(plane, cloud, "ingresses")) == 1, 120.0)
    for kind in _KINDS:
        assert [one["metadata"]["labels"]["hekla.dev/job"] for one in port_objects(plane, cloud, kind)] == ["other"]


@pytest.mark.kubernetes
def test_restarted_job_has_an_ingress_again(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    cloud.backend.remove("job")
    plane.wait_until(lambda: not port_objects(plane, cloud, "ingresses"), 120.0)
    cloud.started(cloud.long(1, ports=_PORTS))
    assert len(port_objects(plane, cloud, "ingresses")) == 1


@pytest.mark.kubernetes
def test_without_a_domain_nothing_is_created(plane, make_cluster) -> None:
    cluster = make_cluster("kubernetes")
    grant_in_namespace(plane, "rights-ports.yaml", cluster.config["namespace"])
    cluster.started(cluster.long(ports=_PORTS))
    assert [port_objects(plane, cluster, kind) for kind in _KINDS] == [[], [], []]


@pytest.mark.kubernetes
def test_pods_run_without_the_permission(without_permission, small_cluster) -> None:
    key = without_permission.started(without_permission.long(ports=_PORTS))
    assert without_permission.until(key, PodPhase.RUNNING)
    assert port_objects(small_cluster, without_permission, "ingresses") == []


@pytest.mark.kubernetes
@pytest.mark.parametrize("status", [400, 409, 500])
def test_pods_run_if_the_ingress_is_refused(status: int, cloud, plane, monkeypatch) -> None:
    """By an admission webhook, because another ingress has that host, or because the webhook is down."""
    create = cloud.backend.parts.client.create_once

    async def without_ingress(path: str, body: Any) -> Any:
        if path.endswith("/ingresses"):
            raise ApiError(status, "", "admission webhook denied the request")
        return await create(path, body)

    monkeypatch.setattr(cloud.backend.parts.client, "create_once", without_ingress)
    assert cloud.until(cloud.started(cloud.long(ports=_PORTS)), PodPhase.RUNNING)


@pytest.mark.parametrize("more", [{"namespaces": "tenant"}, {"scheduler": "volcano"}])
def test_ingress_is_refused_with_tenant_namespaces_and_with_volcano(more, tmp_path) -> None:
    with pytest.raises(Invalid) as refused:
        open_backend("kubernetes", {"ingress": _INGRESS, **more}, BackendContext("c1", tmp_path, now))
    assert "ingress" in str(refused.value.problems)
    assert KubernetesConfig().ingress is None
