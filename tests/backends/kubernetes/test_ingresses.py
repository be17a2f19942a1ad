"""People outside of a cluster reach ports that jobs name, where the cluster is to lead them there, and no others."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.backends.conftest import Place
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import _give, give_inside

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
    """With the role that leading people to ports takes, which is given in no namespace yet."""
    _give(small_cluster, "rights-ports.yaml")
    return small_cluster


@pytest.fixture
def closed(make_place: Callable[[str], Place]) -> Place:
    """Where nobody gave the right to it."""
    place = make_place("kubernetes")
    place.config["ingress"] = _INGRESS
    place.backend = place.reopened()
    return place


@pytest.fixture
def cloud(plane: ControlPlane, closed: Place) -> Place:
    give_inside(plane, "rights-ports.yaml", closed.config["namespace"])
    return closed


def there(plane: ControlPlane, place: Place, kind: str) -> list[dict[str, Any]]:
    """What is there of the pods' jobs, but what each job has anyway."""
    group = "api" if _KINDS[kind] == "v1" else "apis"
    listed = plane.request("GET", f"/{group}/{_KINDS[kind]}/namespaces/{place.config['namespace']}/{kind}")
    return [one for one in listed["items"] if one["metadata"]["name"].startswith("port-")]


@pytest.mark.kubernetes
def test_a_port_has_a_host_of_its_own_below_the_domain(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    (ingress,), (service,) = there(plane, cloud, "ingresses"), there(plane, cloud, "services")
    (rule,) = ingress["spec"]["rules"]
    assert (rule["host"], ingress["spec"]["ingressClassName"]) == ("job-board.jobs.example.org", "nginx")
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"number": 6006}}
    wanted = {"hekla.dev/cluster": "c1", "hekla.dev/job": "job", "hekla.dev/task": "worker"}
    assert service["spec"]["selector"] == wanted
    assert "tls" not in ingress["spec"]


@pytest.mark.kubernetes
def test_its_pods_let_the_proxy_in_to_that_port_alone(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    (policy,) = there(plane, cloud, "networkpolicies")
    outside, inside = policy["spec"]["ingress"]
    assert outside["ports"] == [{"protocol": "TCP", "port": 6006}]
    assert outside["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
    assert inside["from"] == [{"podSelector": {"matchLabels": {"hekla.dev/cluster": "c1", "hekla.dev/job": "job"}}}]


@pytest.mark.kubernetes
def test_where_the_proxy_has_certificates_the_host_is_served_by_https(cloud, plane) -> None:
    cloud.config["ingress"] = {**_INGRESS, "tls": True}
    cloud.backend = cloud.reopened()
    cloud.started(cloud.long(ports=_PORTS))
    (ingress,) = there(plane, cloud, "ingresses")
    assert ingress["spec"]["tls"] == [{"hosts": ["job-board.jobs.example.org"]}]


@pytest.mark.kubernetes
def test_all_pods_of_a_job_share_it_also_those_that_another_process_starts(cloud, plane) -> None:
    orders = [cloud.long(index, ports=_PORTS) for index in range(3)]
    assert [
        error for _order, error in cloud.backend.runner.start_many(orders[:2], heartbeat=lambda: None) if error
    ] == []
    cloud.start(orders[2], at=cloud.reopened())
    (ingress,), (service,) = there(plane, cloud, "ingresses"), there(plane, cloud, "services")
    (owner,) = ingress["metadata"]["ownerReferences"]
    assert owner["uid"] == service["metadata"]["uid"]


@pytest.mark.kubernetes
def test_a_start_that_was_cut_off_before_the_host_was_there_is_made_whole(cloud, plane, monkeypatch) -> None:
    order, first = cloud.long(ports=_PORTS), cloud.reopened()
    create = first.parts.client.create_once

    async def without_ingress(path: str, body: Any) -> Any:
        return None if path.endswith("/ingresses") else await create(path, body)

    monkeypatch.setattr(first.parts.client, "create_once", without_ingress)
    cloud.start(order, at=first)
    assert there(plane, cloud, "ingresses") == []
    cloud.start(order)
    cloud.start(cloud.long(1, ports=_PORTS))
    assert len(there(plane, cloud, "ingresses")) == 1


@pytest.mark.kubernetes
def test_it_is_gone_with_the_job(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    cloud.started(cloud.long(job="other", ports=_PORTS))
    assert len(there(plane, cloud, "ingresses")) == 2
    cloud.backend.remove("job")
    plane.wait_until(lambda: len(there(plane, cloud, "ingresses")) == 1, 120.0)
    for kind in _KINDS:
        assert [one["metadata"]["labels"]["hekla.dev/job"] for one in there(plane, cloud, kind)] == ["other"]


@pytest.mark.kubernetes
def test_a_job_that_starts_again_after_it_was_cleared_away_is_reached_again(cloud, plane) -> None:
    cloud.started(cloud.long(ports=_PORTS))
    cloud.backend.remove("job")
    plane.wait_until(lambda: not there(plane, cloud, "ingresses"), 120.0)
    cloud.started(cloud.long(1, ports=_PORTS))
    assert len(there(plane, cloud, "ingresses")) == 1


@pytest.mark.kubernetes
def test_where_no_domain_is_said_nothing_is_made(plane, make_place) -> None:
    place = make_place("kubernetes")
    give_inside(plane, "rights-ports.yaml", place.config["namespace"])
    place.started(place.long(ports=_PORTS))
    assert [there(plane, place, kind) for kind in _KINDS] == [[], [], []]


@pytest.mark.kubernetes
def test_pods_run_where_the_right_to_it_is_missing(closed, small_cluster) -> None:
    key = closed.started(closed.long(ports=_PORTS))
    assert closed.until(key, PodPhase.RUNNING)
    assert there(small_cluster, closed, "ingresses") == []


@pytest.mark.kubernetes
@pytest.mark.parametrize("status", [400, 409, 500])
def test_pods_run_where_the_server_does_not_take_the_host(status: int, cloud, plane, monkeypatch) -> None:
    """As those who admit objects answer, where another has that host, or where they are away."""
    create = cloud.backend.parts.client.create_once

    async def without_ingress(path: str, body: Any) -> Any:
        if path.endswith("/ingresses"):
            raise ApiError(status, "", "admission webhook denied the request")
        return await create(path, body)

    monkeypatch.setattr(cloud.backend.parts.client, "create_once", without_ingress)
    assert cloud.until(cloud.started(cloud.long(ports=_PORTS)), PodPhase.RUNNING)


@pytest.mark.parametrize("more", [{"namespaces": "tenant"}, {"scheduler": "volcano"}])
def test_it_is_refused_where_hekla_makes_no_pods_or_has_no_rights_for_it(more, tmp_path) -> None:
    with pytest.raises(Invalid) as refused:
        open_backend("kubernetes", {"ingress": _INGRESS, **more}, BackendContext("c1", tmp_path, now))
    assert "ingress" in str(refused.value.problems)
    assert KubernetesConfig().ingress is None
