"""Pod Security: what the real API server admits, and what pods may connect to."""

import ipaddress
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.kubernetes.test_tenants import POLICIES, for_tenant, list_objects, namespace_of
from tests.kubernetes.control_plane import RequestRefused

from hekla.backends.config import parse_config
from hekla.backends.kubernetes import tenant_manifests
from hekla.backends.kubernetes.config import ConsoleConfig, KubernetesConfig
from hekla.domain.errors import Invalid
from hekla.domain.phases import PodPhase


@pytest.fixture
def namespaced(make_cluster) -> ClusterFixture:
    return make_cluster("kubernetes-tenants")


def pod_of(plane, cluster: ClusterFixture, **fields) -> dict[str, Any]:
    """A pod that Hekla started for the tenant `lab`, as the server has it."""
    order = for_tenant("lab", cluster.long(**fields))
    cluster.started(order)
    cluster.until(order.key, PodPhase.RUNNING)
    found: dict[str, Any] = plane.request(
        "GET", f"/api/v1/namespaces/{namespace_of(cluster, 'lab')}/pods/{order.key.name}"
    )
    return found


@pytest.mark.kubernetes
def test_restricted_namespace_admits_our_pods_and_refuses_others(namespaced, small_cluster):
    spec = pod_of(small_cluster, namespaced)["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["securityContext"]["runAsUser"] == 1000
    assert spec["automountServiceAccountToken"] is False
    plain = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        small_cluster.request("POST", f"/api/v1/namespaces/{namespace_of(namespaced, 'lab')}/pods", plain)


@pytest.mark.kubernetes
def test_namespace_can_be_less_restricted(make_cluster, small_cluster):
    cluster = make_cluster("kubernetes-tenants", config={"pod_security": "baseline", "capabilities": ["SYS_CHROOT"]})
    spec = pod_of(small_cluster, cluster)["spec"]
    assert "runAsUser" not in spec["securityContext"]
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_CHROOT"]}
    labels = small_cluster.request("GET", f"/api/v1/namespaces/{namespace_of(cluster, 'lab')}")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"


def allows(policy: dict[str, Any], address: str, port: int) -> bool:
    """Whether an egress policy lets pods connect to an address outside the cluster."""
    return any(
        all(one["port"] == port for one in rule.get("ports", ())) and is_in(rule["to"], address)
        for rule in policy["spec"]["egress"]
    )


def is_in(peers: list[dict[str, Any]], address: str) -> bool:
    wanted = ipaddress.ip_address(address)

    def contains(text: str) -> bool:
        return wanted in ipaddress.ip_network(text)

    blocks = [peer["ipBlock"] for peer in peers if "ipBlock" in peer]
    return any(contains(block["cidr"]) and not any(map(contains, block.get("except", ()))) for block in blocks)


@pytest.mark.parametrize(
    ("config", "address", "port", "allowed"),
    [
        ({}, "203.0.113.9", 443, True),
        ({}, "2001:db8::1", 443, True),
        ({}, "169.254.169.254", 80, False),
        ({}, "fd00:ec2::254", 80, False),
        ({}, "10.96.0.7", 6379, False),
        ({}, "192.168.1.4", 5432, False),
        ({}, "10.96.0.10", 53, False),
        ({}, "169.254.20.10", 53, True),
        ({}, "169.254.20.10", 80, False),
        ({"name_servers": ["10.96.0.10/32", "169.254.169.254/32"]}, "10.96.0.10", 53, True),
        ({"name_servers": ["10.96.0.10/32", "169.254.169.254/32"]}, "169.254.169.254", 53, True),
        ({"name_servers": ["10.96.0.10/32", "169.254.169.254/32"]}, "169.254.169.254", 80, False),
        ({"name_servers": ["10.96.0.10/32"]}, "169.254.20.10", 53, False),
        ({"internet": False}, "203.0.113.9", 443, False),
        ({"egress": ["10.1.0.0/16"]}, "10.1.2.3", 2049, True),
        ({"egress": ["10.1.0.0/16"]}, "10.2.0.1", 2049, False),
        ({"egress": ["0.0.0.0/0", "::/0"]}, "10.2.0.1", 2049, True),
        ({"egress": ["0.0.0.0/0", "::/0"]}, "169.254.169.254", 80, False),
        ({"egress": ["fc00::/7"]}, "fd00:ec2::254", 80, False),
        ({"egress": ["100.64.0.0/10"]}, "100.100.100.200", 80, False),
        ({"console": {"addresses": ["10.3.0.5/32"], "port": 8443}}, "10.3.0.5", 8443, True),
        ({"console": {"addresses": ["10.3.0.5/32"], "port": 8443}}, "10.3.0.5", 5432, False),
        ({"console": {"addresses": ["10.3.0.5/32"]}}, "10.3.0.6", 8000, False),
        ({"console": {}}, "10.3.0.5", 8000, False),
        ({}, "64:ff9b::a9fe:a9fe", 80, False),
        ({}, "::ffff:a00:1", 80, False),
        ({}, "2002:a00:1::", 80, False),
    ],
)
def test_pods_connect_only_to_what_the_configuration_opens(config, address, port, allowed):
    policy = tenant_manifests.egress_policy("hekla", {}, parse_config(KubernetesConfig, config), {})
    assert allows(policy, address, port) is allowed


def test_pods_reach_the_name_servers_of_the_cluster_and_their_tenant_only_if_opened():
    """No network of a test enforces policies, so what they select is compared."""
    spec = tenant_manifests.egress_policy("hekla", {"t": "lab"}, KubernetesConfig(internet=False), {})["spec"]
    (servers,) = spec["egress"]
    assert [one["port"] for one in servers["ports"]] == [53, 53]
    assert servers["to"][0] == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    opened = KubernetesConfig(internet=False, egress_to_tenant=True)
    spec = tenant_manifests.egress_policy("hekla", {"t": "lab"}, opened, {})["spec"]
    assert spec["egress"] == [servers, {"to": [{"podSelector": {"matchLabels": {"t": "lab"}}}]}]


def test_pods_reach_the_port_of_a_console_in_their_cluster():
    config, user = KubernetesConfig(console=ConsoleConfig(port=8080)), "system:serviceaccount:hekla:console"
    *_others, rule = tenant_manifests.egress_policy("hekla", {}, config, {}, user)["spec"]["egress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8080}]
    (peer,) = rule["to"]
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "hekla"}}
    assert peer["podSelector"]["matchExpressions"][0]["operator"] == "DoesNotExist"


@pytest.mark.kubernetes
def test_egress_policy_is_valid_at_the_server(make_cluster, small_cluster):
    console = {"addresses": ["10.3.0.5/32"], "port": 8443}
    namespaced = make_cluster("kubernetes-tenants", config={"console": console})
    pod_of(small_cluster, namespaced)
    found = list_objects(small_cluster, POLICIES.format(namespace_of(namespaced, "lab")))
    (egress,) = [one for one in found if one["metadata"]["name"] == "hekla-egress"]
    assert egress["spec"]["policyTypes"] == ["Egress"]
    assert all("to" in rule for rule in egress["spec"]["egress"])
    assert {"podSelector": {}} not in [peer for rule in egress["spec"]["egress"] for peer in rule["to"]]
    assert not allows(egress, "169.254.169.254", 80)
    assert allows(egress, "10.3.0.5", 8443)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"pod_security": "restricted", "capabilities": ["CHOWN"]}, "config.capabilities"),
        ({"capabilities": ["SYS_ADMIN"]}, "config.capabilities.0"),
        ({"egress": ["10.0.0.0/33"]}, "config.egress.0"),
        ({"egress": ["169.254.169.254/32"]}, "config.egress.0"),
        ({"name_servers": ["dns.example"]}, "config.name_servers.0"),
        ({"run_as_user": 0}, "config.run_as_user"),
        ({"pod_security": "privileged"}, "config.pod_security"),
    ],
)
def test_unsafe_configuration_is_refused(config, path):
    with pytest.raises(Invalid) as refused:
        parse_config(KubernetesConfig, config)
    assert [problem.path for problem in refused.value.problems] == [path]
