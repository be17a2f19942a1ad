"""Health of a Kubernetes cluster: reachability with its reason, version, and missing permissions."""

import itertools
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import V1ResourceRule
from tests.backends.conftest import health
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import Health, HealthProblem
from hekla.backends.kubernetes import keys
from hekla.backends.kubernetes.config import IngressConfig, KubernetesConfig
from hekla.backends.kubernetes.permissions import (
    FOR_GROUP_PRIORITIES,
    REQUIRED,
    REQUIRED_FOR_QUEUES,
    ClusterPermission,
    permissions_for_external_pods,
    required_permissions,
)
from hekla.lib.checkout import CHECKOUT

_OF_THE_CLUSTER = (
    "hekla-machines",
    "hekla-namespaces",
    "hekla-adopted-priorities",
    "hekla-priorities",
    "hekla-devices",
    "hekla-storage",
    "hekla-adopted-queues",
    "hekla-volcano-queues",
)


def health_of(plane: ControlPlane, home: Path, namespace: str, token: str) -> Health:
    key = keys.from_kubeconfig(json.dumps(plane.kubeconfig(token))).encode()
    return health(config={"namespace": namespace}, home=home, key=key)


def permissions_in_file(name: str) -> dict[str, set[ClusterPermission]]:
    """The permissions of each ClusterRole of a file for operators."""
    documents = yaml.safe_load_all((CHECKOUT / "deploy" / "kubernetes" / name).read_text())
    return {one["metadata"]["name"]: set(permissions_of_role(one)) for one in documents if one["kind"] == "ClusterRole"}


def permissions_of_role(role: dict[str, Any]) -> Iterator[ClusterPermission]:
    everywhere = role["metadata"]["name"] in _OF_THE_CLUSTER
    for rule in role["rules"]:
        (group,), names = rule["apiGroups"], rule.get("resourceNames", [""])
        for verb, kind, name in itertools.product(rule["verbs"], rule["resources"], names):
            yield ClusterPermission(verb, kind, everywhere, group=group, name=name)


def test_required_permissions_are_those_of_the_file_for_operators() -> None:
    granted = permissions_in_file("rights.yaml")
    assert set.union(*granted.values()) == set(REQUIRED)


def test_permissions_for_tenant_namespaces_are_those_of_their_file() -> None:
    granted, second = permissions_in_file("rights.yaml"), permissions_in_file("rights-tenants.yaml")
    namespaced = KubernetesConfig(namespaces="tenant")
    assert set.union(*granted.values(), second["hekla-namespaces"]) == set(required_permissions(namespaced))
    assert granted["hekla-pods"] < second["hekla-tenants"], "the role for tenant namespaces includes the role for pods"


def test_permissions_for_priority_classes_are_those_of_their_file() -> None:
    granted, more = permissions_in_file("rights.yaml"), permissions_in_file("rights-priorities.yaml")
    assert set.union(*granted.values(), *more.values()) == set(
        required_permissions(KubernetesConfig(priority_classes=True))
    )


def test_permissions_for_claims_are_those_of_their_file() -> None:
    granted, more = permissions_in_file("rights.yaml"), permissions_in_file("rights-devices.yaml")
    assert set.union(*granted.values(), *more.values()) == set(required_permissions(KubernetesConfig(devices=True)))
    tenants = permissions_in_file("rights-tenants.yaml")["hekla-tenants"]
    assert more["hekla-claims"] < tenants, "the role for tenant namespaces includes that for claims"


def test_permissions_for_volumes_are_those_of_their_file() -> None:
    granted, more = permissions_in_file("rights.yaml"), permissions_in_file("rights-storage.yaml")
    assert set.union(*granted.values(), *more.values()) == set(required_permissions(KubernetesConfig(storage=True)))
    tenants = permissions_in_file("rights-tenants.yaml")["hekla-tenants"]
    assert more["hekla-volume-claims"] < tenants, "the role for tenant namespaces includes that for volume claims"


def test_permissions_for_volcano_are_those_of_their_file() -> None:
    granted = {**permissions_in_file("rights.yaml"), **permissions_in_file("rights-volcano.yaml")}
    assert set.union(*granted.values()) == set(required_permissions(KubernetesConfig(scheduler="volcano")))


def test_missing_permissions_for_volcano_are_listed(
    small_cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    key = keys.from_kubeconfig(json.dumps(small_cluster.kubeconfig(small_cluster.tenants_token))).encode()
    config = {"namespace": namespace, "scheduler": "volcano"}
    found = health(config=config, home=tmp_path, key=key)
    assert {"create jobs", "patch jobs", "create commands", "list podgroups", "list events", "patch queues *"} <= set(
        found.missing
    )


def test_permissions_for_ports_are_those_of_their_file() -> None:
    granted, more = permissions_in_file("rights.yaml"), permissions_in_file("rights-ports.yaml")
    ingress = IngressConfig(domain="jobs.example.org", class_name="nginx", namespace="ingress-nginx")
    assert set.union(*granted.values(), *more.values()) == set(required_permissions(KubernetesConfig(ingress=ingress)))


def test_permissions_for_external_pods_are_those_of_their_file() -> None:
    granted = set()
    for document in yaml.safe_load_all((CHECKOUT / "deploy" / "kubernetes" / "rights-adopted.yaml").read_text()):
        for rule in document.get("rules", ()) if document["metadata"]["name"] == "hekla-adopted" else ():
            (group,) = rule["apiGroups"]
            granted |= {
                ClusterPermission(verb, one, namespace="team-a", group=group)
                for one in rule["resources"]
                for verb in rule["verbs"]
            }
    expected = permissions_for_external_pods("team-a", has_groups=True, claims_devices=True, binds_volumes=True)
    assert granted == set(expected)
    assert permissions_in_file("rights-adopted.yaml")["hekla-adopted-priorities"] == set(FOR_GROUP_PRIORITIES)


def test_permissions_to_show_queues_are_those_of_their_file() -> None:
    (granted,) = permissions_in_file("rights-adopted-queues.yaml").values()
    assert granted == set(REQUIRED_FOR_QUEUES)


def test_missing_permissions_for_external_pods_are_listed_with_their_namespace(
    small_cluster: ControlPlane, granted_namespace: str, tmp_path: Path
) -> None:
    key = keys.from_kubeconfig(json.dumps(small_cluster.kubeconfig(small_cluster.user_token))).encode()
    external_pods = {"namespaces": {"default": "lab"}, "owner": "ada"}
    config = {"namespace": granted_namespace, "external_pods": external_pods}
    found = health(config=config, home=tmp_path, key=key)
    expected = {str(right) for right in permissions_for_external_pods("default", has_groups=False)}
    assert expected - {"list pods default"} <= set(found.missing)
    assert all(missing.endswith(" default") for missing in found.missing)


RULES = [
    ({"resources": ["pods"], "verbs": ["get", "list"]}, True),
    ({"resources": ["*"], "verbs": ["*"]}, True),
    ({"resources": ["pods"], "verbs": ["list"]}, False),
    ({"resources": ["pods/log"], "verbs": ["get"]}, False),
    ({"resources": ["pods"], "verbs": ["get"], "resourceNames": ["mine"]}, False),
    ({"resources": ["pods"], "verbs": ["get"], "apiGroups": ["metrics.k8s.io"]}, False),
]


@pytest.mark.parametrize(("rule", "gives"), RULES)
def test_rule_grants_what_it_lists_and_nothing_cluster_wide(rule: dict[str, list[str]], gives: bool) -> None:
    rules = [V1ResourceRule.from_dict({"apiGroups": [""], **rule})]
    assert ClusterPermission("get", "pods").is_granted(rules) is gives
    assert not ClusterPermission("get", "pods", everywhere=True).is_granted(rules)


def test_rule_for_all_logs_grants_logs_of_pods() -> None:
    assert ClusterPermission("get", "pods/log").is_granted(
        [V1ResourceRule(api_groups=["*"], resources=["*/log"], verbs=["get"])]
    )


def test_cluster_with_all_permissions_has_no_problem(
    small_cluster: ControlPlane, granted_namespace: str, tmp_path: Path
) -> None:
    found = health_of(small_cluster, tmp_path, granted_namespace, small_cluster.user_token)
    assert (found.problem, found.missing, found.has_namespace) == (None, (), True)
    assert found.version.startswith("v1.")
    assert sum(found.kubelets.values()) >= 2
    config_maps = small_cluster.request("GET", f"/api/v1/namespaces/{granted_namespace}/configmaps")["items"]
    assert not [one for one in config_maps if one["metadata"]["name"].startswith("hekla-")], (
        "the check leaves nothing behind"
    )


def test_missing_permissions_are_listed_one_by_one(small_cluster: ControlPlane, namespace: str, tmp_path: Path) -> None:
    found = health_of(small_cluster, tmp_path, namespace, small_cluster.user_token)
    of_storage = {str(ClusterPermission("list", "persistentvolumeclaims"))}
    """Granted in the whole cluster by `rights-storage.yaml`."""
    assert set(found.missing) == {
        str(right) for right in REQUIRED if not right.everywhere and right.resource != "pods"
    } - of_storage | {f"{verb} pods" for verb in ("create", "get", "watch", "patch", "delete", "deletecollection")}, (
        "only cluster-wide permissions apply in this namespace"
    )
    assert (found.problem, found.has_namespace) == (None, None)
    assert found.kubelets


def test_missing_namespace_is_reported(small_cluster: ControlPlane, tmp_path: Path) -> None:
    found = health_of(small_cluster, tmp_path, "nowhere", small_cluster.token)
    assert (found.problem, found.missing, found.has_namespace) == (None, (), False)


def test_rejected_token_is_reported(small_cluster: ControlPlane, tmp_path: Path) -> None:
    found = health_of(small_cluster, tmp_path, "default", "no-such-token")
    assert found.problem is HealthProblem.NOT_LET_IN
    assert "no-such-token" not in found.detail


def test_untrusted_certificate_is_reported(small_cluster: ControlPlane, tmp_path: Path) -> None:
    key = keys.from_token(small_cluster.url, "", small_cluster.token).encode()
    found = health(config={}, home=tmp_path, key=key)
    assert found.problem is HealthProblem.UNTRUSTED
    assert small_cluster.token not in found.detail


@pytest.fixture
def closed_address() -> Iterator[str]:
    """An address at which no server listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_unreachable_server_is_reported(closed_address: str, tmp_path: Path) -> None:
    found = health(config={}, home=tmp_path, key=keys.from_token(closed_address, "", "t").encode())
    assert found.problem is HealthProblem.SILENT


def test_unreadable_key_is_reported_and_not_replaced_by_a_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "mine").write_text("{}")
    found = health(config={"kubeconfig": "mine"}, home=tmp_path, key="")
    assert (found.problem, "Replace" in found.detail) == (HealthProblem.UNUSABLE, True)


def test_no_service_account_outside_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(os.environ, "KUBERNETES_SERVICE_HOST", raising=False)
    assert health(config={}, home=tmp_path).problem is HealthProblem.UNUSABLE
