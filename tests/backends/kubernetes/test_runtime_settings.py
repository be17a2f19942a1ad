"""Runtime class, pull secrets, ports of nodes and security context: what pods carry, and what a cluster allows."""

import dataclasses
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.kubernetes.test_pod_security import pod_of

from hekla.backends.base import PodKey, PodOrder, StartRefused
from hekla.backends.config import parse_config
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.domain.runtime_settings import RuntimeSettings

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CONFIG = {
    "runtime_classes": ["sandboxed"],
    "pull_secrets": ["registry"],
    "host_ports": ["80", "30000-30100"],
    "devices": True,
    "resource_claims": ["one-gpu"],
}
CONTEXT = {"run_as_user": 2000, "fs_group": 7, "supplemental_groups": [8], "read_only_root_filesystem": True}


def settings(**fields: Any) -> RuntimeSettings:
    task = {"name": "a", "command": ["x"], **fields}
    return JobSpec.parse({"name": "j", "tasks": [task]}).tasks[0].runtime_settings


def port(number: int, **more: Any) -> dict[str, Any]:
    return {"host_ports": [{"host_port": number, "container_port": 8080, **more}]}


def claim(template: str) -> dict[str, Any]:
    return {"resource_claims": [{"name": "gpu", "resource_claim_template_name": template}]}


def pod_spec(config: dict[str, Any], tenant: str = "", **fields: Any) -> dict[str, Any]:
    order = PodOrder(PodKey("job", "worker", 0, 0, tenant), "n1", ("true",), "s1", settings=settings(**fields))
    found: dict[str, Any] = Manifests("c1", parse_config(KubernetesConfig, config)).pod(order)["spec"]
    return found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"runtime_class": "other"}, "The runtime class “other” is not for jobs of this cluster.*“runtime_classes”"),
        ({"pull_secrets": ["registry", "hekla"]}, "The pull secret “hekla” is not for jobs.*“pull_secrets”"),
        (claim("other"), "The claim or claim template “other” is not for jobs of this cluster.*“resource_claims”"),
        (port(8080), "Port 8080 of the nodes is not for jobs of this cluster.*“host_ports”"),
        (port(30101), "Port 30101 of the nodes is not for jobs"),
        (port(8), "Port 8 of the nodes is not for jobs"),
    ],
)
def test_only_what_the_configuration_lists_is_for_jobs(fields, message) -> None:
    with pytest.raises(StartRefused, match=message):
        pod_spec(CONFIG, **fields)


def test_pod_carries_its_claims_if_the_cluster_allows_them() -> None:
    found = pod_spec(CONFIG, **claim("one-gpu"))
    assert found["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    assert found["containers"][0]["resources"]["claims"] == [{"name": "gpu"}]
    own = {"devices": True, "namespaces": "tenant"}
    assert pod_spec(own, "lab", **claim("any"))["resourceClaims"]
    with pytest.raises(StartRefused, match="unless its configuration sets “devices”"):
        pod_spec({"namespaces": "tenant"}, "lab", **claim("any"))


@pytest.mark.parametrize("number", [80, 30000, 30050, 30100])
def test_listed_port_is_a_port_of_the_container(number) -> None:
    (container,) = pod_spec(CONFIG, **port(number, protocol="UDP", host_ip="10.0.0.1"))["containers"]
    expected = {"containerPort": 8080, "hostPort": number, "protocol": "UDP", "hostIP": "10.0.0.1"}
    assert container["ports"] == [expected]


def test_tenant_names_every_secret_of_its_own_namespace_but_no_other_runtime_class() -> None:
    config = {"namespaces": "tenant"}
    assert pod_spec(config, "lab", pull_secrets=["own"])["imagePullSecrets"] == [{"name": "own"}]
    with pytest.raises(StartRefused, match="“own” is not for jobs"):
        pod_spec(config, pull_secrets=["own"])
    with pytest.raises(StartRefused, match="“sandboxed” is not for jobs"):
        pod_spec(config, "lab", runtime_class="sandboxed")


def test_restricted_pods_have_their_own_users_but_never_root() -> None:
    config = {"namespaces": "tenant", "run_as_user": 1234}
    usual = pod_spec(config, "lab", security_context={"run_as_group": 5})["securityContext"]
    assert (usual["runAsUser"], usual["runAsGroup"], usual["fsGroup"], usual["runAsNonRoot"]) == (1234, 5, 1234, True)
    own = pod_spec(config, "lab", security_context=CONTEXT)["securityContext"]
    assert (own["runAsUser"], own["runAsGroup"], own["fsGroup"], own["supplementalGroups"]) == (2000, 1234, 7, [8])
    with pytest.raises(StartRefused, match="do not run as root, so run_as_user cannot be 0"):
        pod_spec(config, "lab", security_context={"run_as_user": 0})
    assert pod_spec({}, security_context={"run_as_user": 0})["securityContext"]["runAsUser"] == 0


def test_pod_without_settings_has_none_of_their_fields() -> None:
    spec = pod_spec({})
    assert not {"runtimeClassName", "imagePullSecrets"} & spec.keys()
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert "ports" not in spec["containers"][0]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"host_ports": ["0"]}, "config.host_ports.0"),
        ({"host_ports": ["9-8"]}, "config.host_ports.0"),
        ({"host_ports": ["1-65536"]}, "config.host_ports.0"),
        ({"host_ports": ["any"]}, "config.host_ports.0"),
        ({"host_ports": ["80"], "namespaces": "tenant"}, "config.host_ports"),
        ({"runtime_classes": ["A b"]}, "config.runtime_classes.0"),
    ],
)
def test_invalid_configuration_is_refused(config, path) -> None:
    with pytest.raises(Invalid) as refused:
        parse_config(KubernetesConfig, config)
    assert [problem.path for problem in refused.value.problems] == [path]


@pytest.mark.kubernetes
def test_restricted_namespace_admits_pods_with_users_of_their_own(make_cluster, small_cluster) -> None:
    cluster: ClusterFixture = make_cluster("kubernetes-tenants")
    spec = pod_of(small_cluster, cluster, settings=settings(security_context=CONTEXT, pull_secrets=["own"]))["spec"]
    assert (spec["securityContext"]["runAsUser"], spec["imagePullSecrets"]) == (2000, [{"name": "own"}])
    assert spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.kubernetes
def test_pod_with_a_missing_runtime_class_is_refused_until_it_exists(make_cluster, small_cluster) -> None:
    cluster: ClusterFixture = make_cluster("kubernetes", {"runtime_classes": ["hekla-test-late"]})
    order = cluster.long(settings=settings(runtime_class="hekla-test-late"))
    with pytest.raises(StartRefused, match=r"RuntimeClass .*hekla-test-late.* not found"):
        cluster.start(order)
    made = {"metadata": {"name": "hekla-test-late"}, "handler": "late"}
    small_cluster.request("POST", RUNTIME_CLASSES, made)
    try:
        again = dataclasses.replace(order, key=dataclasses.replace(order.key, attempt=1))
        cluster.until(cluster.started(again), PodPhase.RUNNING)
    finally:
        small_cluster.request("DELETE", f"{RUNTIME_CLASSES}/hekla-test-late")
