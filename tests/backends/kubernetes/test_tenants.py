"""Isolation of tenants on Kubernetes: with a namespace for each, and in a shared one."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.backends.conftest import ClusterFixture, health
from tests.kubernetes.control_plane import ControlPlane, RequestRefused

from hekla.backends import config as configuration
from hekla.backends.base import BackendError, Health, PodKey, PodOrder, StartDelayed
from hekla.backends.kubernetes import keys, layout, names, tenant_manifests
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.tenancy import TenantOrder
from hekla.domain.errors import Invalid
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources

POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"


@pytest.fixture
def namespaced(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes-tenants")


@pytest.fixture
def shared(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


def for_tenant(tenant: str, order: PodOrder) -> PodOrder:
    return dataclasses.replace(order, key=dataclasses.replace(order.key, tenant=tenant))


def namespace_of(cluster: ClusterFixture, tenant: str) -> str:
    return f"{cluster.config['namespace']}-{tenant}"


def apply(cluster: ClusterFixture, tenant: str, **resources: str) -> None:
    """Applies the order of a tenant; raises its error."""
    for _order, error in cluster.backend.tenancy.apply_many([TenantOrder(tenant, resources)], heartbeat=lambda: None):
        if error is not None:
            raise error


def list_objects(plane: ControlPlane, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plane.request("GET", path)["items"]
    return found


def hard_limits(plane: ControlPlane, namespace: str) -> list[dict[str, str]]:
    return [one["spec"]["hard"] for one in list_objects(plane, f"/api/v1/namespaces/{namespace}/resourcequotas")]


def health_of(plane: ControlPlane, cluster: ClusterFixture, token: str) -> Health:
    key = keys.from_kubeconfig(json.dumps(plane.kubeconfig(token))).encode()
    config = {"namespace": cluster.config["namespace"], "namespaces": "tenant"}
    return health(config=config, home=cluster.home, key=key)


@pytest.mark.kubernetes
def test_pods_of_two_tenants_are_in_two_namespaces_and_all_observed(namespaced, small_cluster) -> None:
    first, second = for_tenant("lab", namespaced.long(0)), for_tenant("shop", namespaced.long(1, job="other"))
    for order in (first, second):
        namespaced.started(order)
        namespaced.until(order.key, PodPhase.RUNNING)
    for tenant, order in (("lab", first), ("shop", second)):
        (pod,) = list_objects(small_cluster, f"/api/v1/namespaces/{namespace_of(namespaced, tenant)}/pods")
        assert (pod["metadata"]["name"], pod["spec"]["serviceAccountName"]) == (order.key.name, "hekla-pods")
        assert pod["spec"]["dnsConfig"]["searches"] == [
            f"job-{order.key.job}.{namespace_of(namespaced, tenant)}.svc.cluster.local"
        ]
    fresh = namespaced.reopen()
    assert {pod.key for pod in fresh.observe(None).pods} == {first.key, second.key} == fresh.inventory().alive


def _is_accepted(plane: ControlPlane, path: str, body: dict[str, Any]) -> bool:
    """Whether the namespace accepts this pod; a new namespace needs its default service account first."""
    try:
        plane.request("POST", path, body)
    except RequestRefused as refused:
        if refused.status != 403:
            raise
        return False
    return True


def forge(plane: ControlPlane, namespace: str, key: PodKey, tenant: str) -> str:
    """Creates a failed foreign pod with the name and labels of this key. Returns its path."""
    labels = {**names.labels("c1", key), names.TENANT: tenant}
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    pods_path = f"/api/v1/namespaces/{namespace}/pods"
    path, body = f"{pods_path}/{key.name}", {"metadata": {"name": key.name, "labels": labels}, "spec": spec}
    plane.wait_until(lambda: _is_accepted(plane, pods_path, body), 60.0)
    status = {"status": {"phase": "Failed"}}
    plane.request("PATCH", f"{path}/status", status, content_type="application/merge-patch+json")
    return path


@pytest.mark.kubernetes
@pytest.mark.parametrize("tenant", ["lab", "shop"])
def test_forged_pod_in_another_namespace_affects_no_pod_of_a_tenant(make_cluster, small_cluster, tenant) -> None:
    namespaced = make_cluster("kubernetes-tenants", config={"pod_security": "baseline"})
    apply(namespaced, "shop")
    order = for_tenant("lab", namespaced.long())
    forged = forge(small_cluster, namespace_of(namespaced, "shop"), order.key, tenant)
    namespaced.started(order)
    for backend in (namespaced.backend, namespaced.reopen()):
        observed = [one for one in backend.observe(None).pods if backend.tenancy.owns("lab", one.key)]
        assert [(one.key, one.phase.is_final) for one in observed] == [(order.key, False)]
    namespaced.stop(order.key, reason="Enough")
    assert small_cluster.request("GET", forged)["status"]["phase"] == "Failed"
    namespaced.backend.remove(order.key.job, tenant="lab")
    assert not list_objects(small_cluster, f"/api/v1/namespaces/{namespace_of(namespaced, 'lab')}/pods")
    assert "deletionTimestamp" not in small_cluster.request("GET", forged)["metadata"]
    small_cluster.request("DELETE", forged, {"gracePeriodSeconds": 0})


@pytest.mark.kubernetes
def test_service_account_of_pods_has_no_permissions(namespaced, small_cluster) -> None:
    for index, tenant in enumerate(("lab", "shop")):
        namespaced.started(for_tenant(tenant, namespaced.long(index, job=tenant, secrets={"key": "hidden"})))
    accounts = f"/api/v1/namespaces/{namespace_of(namespaced, 'lab')}/serviceaccounts/hekla-pods"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = small_cluster.request("POST", f"{accounts}/token", body)["status"]["token"]
    assert small_cluster.request("GET", accounts)["automountServiceAccountToken"] is False
    for kind in ("pods", "secrets", "configmaps", "services", "resourcequotas"):
        for tenant in ("shop", "lab"):
            with pytest.raises(RequestRefused) as refused:
                small_cluster.request(
                    "GET", f"/api/v1/namespaces/{namespace_of(namespaced, tenant)}/{kind}", token=token
                )
            assert refused.value.status == 403


@pytest.mark.kubernetes
def test_console_has_permissions_only_in_tenant_namespaces(namespaced, small_cluster) -> None:
    """And the role there is bound to Hekla's own account only."""
    namespaced.started(namespaced.long())
    token, plane = small_cluster.tenants_token, small_cluster
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/default/configmaps"):
        with pytest.raises(RequestRefused, match="cannot list"):
            plane.request("GET", path, token=token)
    binding = tenant_manifests.role_binding("cluster-admin", "hekla-tenants", {})
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace_of(namespaced, 'lab')}/rolebindings"
    with pytest.raises(RequestRefused) as refused:
        plane.request("POST", path, binding, token=token)
    assert refused.value.status == 403
    (role_binding,) = list_objects(plane, path)
    assert [one["name"] for one in role_binding["subjects"]] == ["hekla-tenants"]


@pytest.mark.kubernetes
@pytest.mark.parametrize(
    ("place", "user", "reason"),
    [("kube-system", "hekla-tenants", "only in the namespaces of tenants"), ("", "alice", "only to itself")],
)
def test_role_is_bound_only_in_tenant_namespaces_and_to_hekla(namespaced, small_cluster, place, user, reason) -> None:
    """Even with Hekla's own token. The permissions alone admit it: they cannot tell which namespaces are tenants'."""
    apply(namespaced, "lab")
    plane, binding = small_cluster, tenant_manifests.role_binding("hekla-tenants", user, {})
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place or namespace_of(namespaced, 'lab')}/rolebindings"

    def is_refused() -> bool:
        try:
            plane.request("POST", path, binding, token=plane.tenants_token)
        except RequestRefused as refusal:
            return reason in str(refusal)
        plane.request("DELETE", f"{path}/{binding['metadata']['name']}")  # the policy is not in force yet
        return False

    plane.wait_until(is_refused, 30)


@pytest.mark.kubernetes
def test_tenant_namespace_has_labels_and_a_network_policy(namespaced, small_cluster) -> None:
    apply(namespaced, "lab")
    labels = small_cluster.request("GET", f"/api/v1/namespaces/{namespace_of(namespaced, 'lab')}")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert (labels[names.CLUSTER], labels[names.TENANT]) == ("c1", "lab")
    policy, egress = list_objects(small_cluster, POLICIES.format(namespace_of(namespaced, "lab")))
    assert egress["spec"]["policyTypes"] == ["Egress"]
    assert policy["spec"] == {
        "podSelector": {"matchExpressions": [{"key": names.CLOSED, "operator": "DoesNotExist"}]},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}]}],
    }


@pytest.mark.kubernetes
def test_shared_namespace_has_a_network_policy_per_tenant(shared, small_cluster) -> None:
    for tenant in ("lab", "shop"):
        apply(shared, tenant)
    apply(shared, "lab")
    own = {
        one["metadata"]["name"]: one["spec"]["podSelector"]["matchLabels"]
        for one in list_objects(small_cluster, POLICIES.format(shared.config["namespace"]))
    }
    assert own == {
        f"hekla-{tenant}{kind}": {names.CLUSTER: "c1", names.TENANT: tenant}
        for tenant in ("lab", "shop")
        for kind in ("", "-egress")
    }
    order = for_tenant("lab", shared.long())
    shared.started(order)
    pod = small_cluster.request("GET", f"/api/v1/namespaces/{shared.config['namespace']}/pods/{order.key.name}")
    assert own["hekla-lab"].items() <= pod["metadata"]["labels"].items()


@pytest.mark.kubernetes
def test_resource_quota_follows_the_order(namespaced, small_cluster) -> None:
    apply(namespaced, "lab", cpu="2", memory="4Gi", pods="10", **{"nvidia.com/gpu": "0"})
    expected = {"requests.cpu": "2", "requests.memory": "4Gi", "pods": "10", "requests.nvidia.com/gpu": "0"}
    assert hard_limits(small_cluster, namespace_of(namespaced, "lab")) == [expected]
    apply(namespaced, "lab", cpu="1500m")
    assert hard_limits(small_cluster, namespace_of(namespaced, "lab")) == [{"requests.cpu": "1500m"}]
    apply(namespaced, "lab")
    assert hard_limits(small_cluster, namespace_of(namespaced, "lab")) == []


@pytest.mark.kubernetes
def test_pod_over_quota_is_delayed_and_starts_when_there_is_room(namespaced, small_cluster) -> None:
    apply(namespaced, "lab", cpu="1", memory="1Gi")
    small_cluster.wait_until(lambda: has_status(small_cluster, namespace_of(namespaced, "lab")))
    size = Resources.parse({"cpu": "1"})
    first, second = namespaced.long(0, resources=size), namespaced.long(1, resources=size)
    namespaced.started(first)
    with pytest.raises(StartDelayed, match=r"^exceeded quota: hekla.*requests\.cpu=1"):
        namespaced.start(second)
    namespaced.started(namespaced.long(2))  # requests nothing
    apply(namespaced, "lab", cpu="2")
    small_cluster.wait_until(lambda: is_started(namespaced, second))


def has_status(plane: ControlPlane, namespace: str) -> bool:
    (quota,) = list_objects(plane, f"/api/v1/namespaces/{namespace}/resourcequotas")
    return bool((quota.get("status") or {}).get("hard"))


def is_started(cluster: ClusterFixture, order: PodOrder) -> bool:
    try:
        cluster.start(order)
    except BackendError:
        return False
    return True


@pytest.mark.kubernetes
def test_removed_job_leaves_nothing_and_other_jobs_are_unchanged(namespaced, small_cluster) -> None:
    def objects() -> set[tuple[str, str]]:
        return {
            (kind, one["metadata"]["labels"][names.JOB])
            for tenant in ("lab", "shop")
            for kind in ("pods", "services", "configmaps", "secrets")
            for one in list_objects(small_cluster, f"/api/v1/namespaces/{namespace_of(namespaced, tenant)}/{kind}")
            if names.JOB in (one["metadata"].get("labels") or {})
        }

    for index, (job, tenant) in enumerate((("one", "lab"), ("two", "lab"), ("three", "shop"))):
        namespaced.started(for_tenant(tenant, namespaced.long(index, job=job, files={"a": "b"}, secrets={"c": "d"})))
    fresh = namespaced.reopen()
    fresh.remove("one", tenant="lab")
    assert {job for _kind, job in objects()} == {"two", "three"}
    fresh.remove_logs("three")
    assert objects() == {(kind, "two") for kind in ("pods", "services", "configmaps", "secrets")}


@pytest.mark.kubernetes
def test_deleted_namespace_is_created_again(namespaced, small_cluster) -> None:
    apply(namespaced, "lab")
    path = f"/api/v1/namespaces/{namespace_of(namespaced, 'lab')}"
    small_cluster.request("DELETE", path)
    order = namespaced.long()
    small_cluster.wait_until(lambda: is_started(namespaced, order), 60)
    assert namespaced.until(order.key, PodPhase.RUNNING)
    small_cluster.wait_until(
        lambda: may_delete(small_cluster, namespaced)
    )  # for the cleanup, once the permissions are in force


@pytest.mark.kubernetes
def test_foreign_namespace_is_refused(namespaced, small_cluster) -> None:
    small_cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace_of(namespaced, "lab")}})
    with pytest.raises(BackendError, match="does not belong to the tenant lab"):
        apply(namespaced, "lab")
    with pytest.raises(BackendError, match="does not belong to the tenant lab"):
        namespaced.start(namespaced.long())


@pytest.mark.kubernetes
def test_foreign_changes_are_reverted(namespaced, small_cluster) -> None:
    apply(namespaced, "lab", cpu="2")
    namespace = namespace_of(namespaced, "lab")
    (binding,) = list_objects(
        small_cluster, path := f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    )
    small_cluster.request("DELETE", f"{path}/{binding['metadata']['name']}")
    permissive = {"spec": {"ingress": [{}], "egress": [], "policyTypes": ["Ingress", "Egress"]}}
    merge = "application/merge-patch+json"
    small_cluster.request("PATCH", f"{POLICIES.format(namespace)}/hekla", permissive, content_type=merge)
    small_cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/resourcequotas/hekla")
    apply(namespaced, "lab", cpu="2")
    policy, _egress = list_objects(small_cluster, POLICIES.format(namespace))
    assert (policy["spec"]["policyTypes"], "egress" in policy["spec"]) == (["Ingress"], False)
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]
    assert hard_limits(small_cluster, namespace) == [{"requests.cpu": "2"}]


def revoke_permissions(plane: ControlPlane, cluster: ClusterFixture) -> None:
    """Removes Hekla's permissions in the tenant's namespace."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace_of(cluster, 'lab')}/rolebindings"
    for one in list_objects(plane, path):
        plane.request("DELETE", f"{path}/{one['metadata']['name']}")
    plane.wait_until(lambda: not may_delete(plane, cluster), 60.0)


def may_delete(plane: ControlPlane, cluster: ClusterFixture) -> bool:
    """Whether Hekla's permissions in the tenant's namespace are in force: the API server applies them with a delay."""
    body = {
        "spec": {
            "resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": namespace_of(cluster, "lab")}
        }
    }
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(plane.request("POST", reviews, body, token=plane.tenants_token)["status"].get("allowed"))


@pytest.mark.kubernetes
def test_pods_are_forgotten_and_stopped_after_permissions_were_revoked(namespaced, small_cluster) -> None:
    short, long = namespaced.order(0, script="exit 0"), namespaced.long(1)
    for order in (short, long):
        namespaced.started(order)
    keys = {one.key: one.key for one in namespaced.backend.observe(None).pods}
    namespaced.ended(short.key)
    revoke_permissions(small_cluster, namespaced)
    path = f"/api/v1/namespaces/{namespace_of(namespaced, 'lab')}/pods"
    small_cluster.wait_until(lambda: _is_forgotten(namespaced, keys[short.key], small_cluster, path), 60.0)
    revoke_permissions(small_cluster, namespaced)
    small_cluster.wait_until(lambda: _is_stopped(namespaced, long.key), 60.0)
    assert namespaced.ended(long.key).reason == "Stopped"


def _is_forgotten(cluster: ClusterFixture, key: PodKey, plane: ControlPlane, path: str) -> bool:
    cluster.backend.forget([key])
    return key.name not in {one["metadata"]["name"] for one in list_objects(plane, path)}


def _is_stopped(cluster: ClusterFixture, key: PodKey) -> bool:
    try:
        cluster.stop(key, reason="Enough")
    except BackendError:
        return False
    return True


@pytest.mark.kubernetes
def test_pod_with_our_labels_in_a_foreign_namespace_is_ignored(namespaced, small_cluster, namespace) -> None:
    labels = names.labels("c1", PodKey("job", "worker", 7, 0, tenant="lab"))
    other = small_cluster.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "of-others-"}})
    path = f"/api/v1/namespaces/{other['metadata']['name']}"
    small_cluster.wait_until(lambda: bool(list_objects(small_cluster, f"{path}/serviceaccounts")))
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": namespaced.backend.nodes()[0].name}
    small_cluster.request(
        "POST", f"{path}/pods", {"metadata": {"name": "job-worker-7-0", "labels": labels}, "spec": spec}
    )
    assert namespaced.backend.observe(None).pods == []
    assert namespaced.backend.inventory().present == set()
    small_cluster.request("DELETE", path)


@pytest.mark.kubernetes
def test_missing_permissions_for_tenant_namespaces_are_listed(namespaced, shared, small_cluster) -> None:
    assert health_of(small_cluster, namespaced, small_cluster.tenants_token).missing == ()
    assert set(health_of(small_cluster, shared, small_cluster.user_token).missing) == {
        "watch pods *",
        "list poddisruptionbudgets *",
        "watch poddisruptionbudgets *",
        "create namespaces *",
        "get namespaces *",
        "list namespaces *",
        "create rolebindings *",
        "bind clusterroles *",
    }


@pytest.mark.kubernetes
def test_unknown_tenant_role_is_named_in_the_error(namespaced, small_cluster) -> None:
    namespaced.config |= {"tenant_role": "hekla-nobody"}
    with pytest.raises(BackendError, match="hekla-nobody"):
        namespaced.start(namespaced.long(), at=namespaced.reopen())


SLUGS = st.from_regex(r"[-a-zA-Z0-9_]{1,40}", fullmatch=True)
BASES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)


@given(BASES, SLUGS, SLUGS)
def test_namespaces_of_tenants_are_unique_and_valid(base: str, a: str, b: str) -> None:
    first, second = layout.tenant_namespace(base, a), layout.tenant_namespace(base, b)
    assert (first == second) == (a == b)
    assert layout.tenant_namespace(base, names.tenant(a)) == first
    for name in (first, second):
        assert len(name) <= 63
        assert configuration.parse_config(KubernetesConfig, {"namespace": name})
        assert layout.NamespaceLayout(KubernetesConfig(namespace=base, namespaces="tenant")).may_contain(name)
    assert len(names.tenant(a)) <= 63


INVALID = [
    ({"namespaces": "tenant", "scheduler": "volcano"}, "config.namespaces"),
    ({"namespaces": "tenant", "namespace": "a" * 41}, "config.namespace"),
    ({"namespaces": "each"}, "config.namespaces"),
]


@pytest.mark.parametrize(("config", "path"), INVALID)
def test_invalid_combination_is_reported_at_its_field(config: dict[str, str], path: str) -> None:
    with pytest.raises(Invalid) as refused:
        configuration.parse_config(KubernetesConfig, config)
    assert [problem.path for problem in refused.value.problems] == [path]


def test_network_policy_allows_the_console_in_the_cluster_only() -> None:
    spec = tenant_manifests.network_policy("p", {}, "system:serviceaccount:console:hekla", {})["spec"]
    assert spec["ingress"][0]["from"][1] == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "console"}},
        "podSelector": {"matchExpressions": [{"key": names.TENANT, "operator": "DoesNotExist"}]},
    }


MOVES = [
    ({}, {"namespaces": "tenant"}, True, False),
    ({"namespaces": "tenant"}, {}, True, True),
    ({}, {"namespace": "other"}, True, True),
    ({"namespaces": "tenant"}, {"namespaces": "tenant", "namespace": "other"}, True, True),
    ({}, {"image": "x", "namespaces": "shared"}, False, False),
]


@pytest.mark.parametrize(("before", "after", "moves", "leaves"), MOVES)
def test_changes_that_move_pods_or_leave_objects_behind(
    before: dict[str, str], after: dict[str, str], moves: bool, leaves: bool
) -> None:
    assert (layout.moves_pods(before, after), layout.leaves_objects_behind(before, after)) == (moves, leaves)
