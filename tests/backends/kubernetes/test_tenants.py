"""Where each tenant has a namespace of its own, what is one's is out of reach of all others."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.backends.conftest import Place, health
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
def apart(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes-tenants")


@pytest.fixture
def shared(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes")


def of(tenant: str, order: PodOrder) -> PodOrder:
    return dataclasses.replace(order, key=dataclasses.replace(order.key, tenant=tenant))


def home(place: Place, tenant: str) -> str:
    return f"{place.config['namespace']}-{tenant}"


def keep(place: Place, tenant: str, **resources: str) -> None:
    """Raises what went wrong."""
    for _order, error in place.backend.tenancy.apply_many([TenantOrder(tenant, resources)], heartbeat=lambda: None):
        if error is not None:
            raise error


def listed(plane: ControlPlane, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plane.request("GET", path)["items"]
    return found


def hard(plane: ControlPlane, namespace: str) -> list[dict[str, str]]:
    return [one["spec"]["hard"] for one in listed(plane, f"/api/v1/namespaces/{namespace}/resourcequotas")]


def asked(plane: ControlPlane, place: Place, token: str) -> Health:
    key = keys.from_kubeconfig(json.dumps(plane.kubeconfig(token))).encode()
    config = {"namespace": place.config["namespace"], "namespaces": "tenant"}
    return health(config=config, home=place.home, key=key)


@pytest.mark.kubernetes
def test_pods_of_two_tenants_are_in_two_namespaces_and_all_are_seen_by_who_begins_anew(apart, small_cluster) -> None:
    ours, theirs = of("lab", apart.long(0)), of("shop", apart.long(1, job="other"))
    for order in (ours, theirs):
        apart.started(order)
        apart.until(order.key, PodPhase.RUNNING)
    for tenant, order in (("lab", ours), ("shop", theirs)):
        (pod,) = listed(small_cluster, f"/api/v1/namespaces/{home(apart, tenant)}/pods")
        assert (pod["metadata"]["name"], pod["spec"]["serviceAccountName"]) == (order.key.name, "hekla-pods")
        assert pod["spec"]["dnsConfig"]["searches"] == [f"job-{order.key.job}.{home(apart, tenant)}.svc.cluster.local"]
    fresh = apart.reopened()
    assert {pod.key for pod in fresh.observe(None).pods} == {ours.key, theirs.key} == fresh.inventory().alive


def _is_taken(plane: ControlPlane, place: str, body: dict[str, Any]) -> bool:
    """Whether the namespace takes this pod; a new one does as soon as it has its default account."""
    try:
        plane.request("POST", place, body)
    except RequestRefused as refused:
        if refused.status != 403:
            raise
        return False
    return True


def forge(plane: ControlPlane, namespace: str, key: PodKey, tenant: str) -> str:
    """Somebody makes a pod there that calls itself this one, and that has failed. Returns its address."""
    labels = {**names.labels("c1", key), names.TENANT: tenant}
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    place = f"/api/v1/namespaces/{namespace}/pods"
    path, body = f"{place}/{key.name}", {"metadata": {"name": key.name, "labels": labels}, "spec": spec}
    plane.wait_until(lambda: _is_taken(plane, place, body), 60.0)
    status = {"status": {"phase": "Failed"}}
    plane.request("PATCH", f"{path}/status", status, content_type="application/merge-patch+json")
    return path


@pytest.mark.kubernetes
@pytest.mark.parametrize("tenant", ["lab", "shop"])
def test_whoever_makes_pods_in_one_tenants_namespace_speaks_for_no_pod_of_another(apart, small_cluster, tenant) -> None:
    keep(apart, "shop")
    order = of("lab", apart.long())
    forged = forge(small_cluster, home(apart, "shop"), order.key, tenant)
    apart.started(order)
    for backend in (apart.backend, apart.reopened()):
        seen = [one for one in backend.observe(None).pods if backend.tenancy.owns("lab", one.key)]
        assert [(one.key, one.phase.is_final) for one in seen] == [(order.key, False)]
    apart.stop(order.key, reason="Enough")
    assert small_cluster.request("GET", forged)["status"]["phase"] == "Failed"
    apart.backend.remove(order.key.job, tenant="lab")
    assert not listed(small_cluster, f"/api/v1/namespaces/{home(apart, 'lab')}/pods")
    assert "deletionTimestamp" not in small_cluster.request("GET", forged)["metadata"]
    small_cluster.request("DELETE", forged, {"gracePeriodSeconds": 0})


@pytest.mark.kubernetes
def test_the_account_of_a_tenants_pods_can_do_nothing_to_what_another_tenant_has(apart, small_cluster) -> None:
    for index, tenant in enumerate(("lab", "shop")):
        apart.started(of(tenant, apart.long(index, job=tenant, secrets={"key": "hidden"})))
    accounts = f"/api/v1/namespaces/{home(apart, 'lab')}/serviceaccounts/hekla-pods"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = small_cluster.request("POST", f"{accounts}/token", body)["status"]["token"]
    assert small_cluster.request("GET", accounts)["automountServiceAccountToken"] is False
    for kind in ("pods", "secrets", "configmaps", "services", "resourcequotas"):
        for tenant in ("shop", "lab"):
            with pytest.raises(RequestRefused) as refused:
                small_cluster.request("GET", f"/api/v1/namespaces/{home(apart, tenant)}/{kind}", token=token)
            assert refused.value.status == 403


@pytest.mark.kubernetes
def test_no_more_may_be_done_than_where_tenants_are(apart, small_cluster) -> None:
    """And what was given there, was given to ourselves only."""
    apart.started(apart.long())
    token, plane = small_cluster.tenants_token, small_cluster
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/default/configmaps"):
        with pytest.raises(RequestRefused, match="cannot list"):
            plane.request("GET", path, token=token)
    binding = tenant_manifests.role_binding("cluster-admin", "hekla-tenants", {})
    place = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{home(apart, 'lab')}/rolebindings"
    with pytest.raises(RequestRefused) as refused:
        plane.request("POST", place, binding, token=token)
    assert refused.value.status == 403
    (given_,) = listed(plane, place)
    assert [one["name"] for one in given_["subjects"]] == ["hekla-tenants"]


@pytest.mark.kubernetes
def test_a_tenants_namespace_is_guarded_and_marked(apart, small_cluster) -> None:
    keep(apart, "lab")
    labels = small_cluster.request("GET", f"/api/v1/namespaces/{home(apart, 'lab')}")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert (labels[names.CLUSTER], labels[names.TENANT]) == ("c1", "lab")
    (policy,) = listed(small_cluster, POLICIES.format(home(apart, "lab")))
    assert policy["spec"] == {
        "podSelector": {"matchExpressions": [{"key": names.CLOSED, "operator": "DoesNotExist"}]},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}]}],
    }


@pytest.mark.kubernetes
def test_where_tenants_share_a_namespace_pods_hear_only_those_of_their_own_tenant(shared, small_cluster) -> None:
    for tenant in ("lab", "shop"):
        keep(shared, tenant)
    keep(shared, "lab")
    own = {
        one["metadata"]["name"]: one["spec"]["podSelector"]["matchLabels"]
        for one in listed(small_cluster, POLICIES.format(shared.config["namespace"]))
    }
    assert own == {f"hekla-{tenant}": {names.CLUSTER: "c1", names.TENANT: tenant} for tenant in ("lab", "shop")}
    order = of("lab", shared.long())
    shared.started(order)
    pod = small_cluster.request("GET", f"/api/v1/namespaces/{shared.config['namespace']}/pods/{order.key.name}")
    assert own["hekla-lab"].items() <= pod["metadata"]["labels"].items()


@pytest.mark.kubernetes
def test_a_quota_follows_what_is_ordered_and_goes_with_it(apart, small_cluster) -> None:
    keep(apart, "lab", cpu="2", memory="4Gi", pods="10", **{"nvidia.com/gpu": "0"})
    wanted = {"requests.cpu": "2", "requests.memory": "4Gi", "pods": "10", "requests.nvidia.com/gpu": "0"}
    assert hard(small_cluster, home(apart, "lab")) == [wanted]
    keep(apart, "lab", cpu="1500m")
    assert hard(small_cluster, home(apart, "lab")) == [{"requests.cpu": "1500m"}]
    keep(apart, "lab")
    assert hard(small_cluster, home(apart, "lab")) == []


@pytest.mark.kubernetes
def test_what_the_quota_does_not_let_in_is_told_and_starts_when_there_is_room(apart, small_cluster) -> None:
    keep(apart, "lab", cpu="1", memory="1Gi")
    small_cluster.wait_until(lambda: has_status(small_cluster, home(apart, "lab")))
    size = Resources.parse({"cpu": "1"})
    first, second = apart.long(0, resources=size), apart.long(1, resources=size)
    apart.started(first)
    with pytest.raises(StartDelayed, match=r"^exceeded quota: hekla.*requests\.cpu=1"):
        apart.start(second)
    apart.started(apart.long(2))  # asks for nothing
    keep(apart, "lab", cpu="2")
    small_cluster.wait_until(lambda: is_started(apart, second))


def has_status(plane: ControlPlane, namespace: str) -> bool:
    (quota,) = listed(plane, f"/api/v1/namespaces/{namespace}/resourcequotas")
    return bool((quota.get("status") or {}).get("hard"))


def is_started(place: Place, order: PodOrder) -> bool:
    try:
        place.start(order)
    except BackendError:
        return False
    return True


@pytest.mark.kubernetes
def test_of_a_removed_job_nothing_is_left_whoever_asks_and_of_others_everything(apart, small_cluster) -> None:
    def things() -> set[tuple[str, str]]:
        return {
            (kind, one["metadata"]["labels"][names.JOB])
            for tenant in ("lab", "shop")
            for kind in ("pods", "services", "configmaps", "secrets")
            for one in listed(small_cluster, f"/api/v1/namespaces/{home(apart, tenant)}/{kind}")
            if names.JOB in (one["metadata"].get("labels") or {})
        }

    for index, (job, tenant) in enumerate((("one", "lab"), ("two", "lab"), ("three", "shop"))):
        apart.started(of(tenant, apart.long(index, job=job, files={"a": "b"}, secrets={"c": "d"})))
    fresh = apart.reopened()
    fresh.remove("one", tenant="lab")
    assert {job for _kind, job in things()} == {"two", "three"}
    fresh.remove_logs("three")
    assert things() == {(kind, "two") for kind in ("pods", "services", "configmaps", "secrets")}


@pytest.mark.kubernetes
def test_a_namespace_that_somebody_deleted_is_made_again(apart, small_cluster) -> None:
    keep(apart, "lab")
    place = f"/api/v1/namespaces/{home(apart, 'lab')}"
    small_cluster.request("DELETE", place)
    order = apart.long()
    small_cluster.wait_until(lambda: is_started(apart, order), 60)
    assert apart.until(order.key, PodPhase.RUNNING)
    small_cluster.wait_until(lambda: may_delete(small_cluster, apart))  # what the test leaves, once the rights are read


@pytest.mark.kubernetes
def test_a_namespace_of_somebody_else_is_not_taken(apart, small_cluster) -> None:
    small_cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": home(apart, "lab")}})
    with pytest.raises(BackendError, match="does not belong to the tenant lab"):
        keep(apart, "lab")
    with pytest.raises(BackendError, match="does not belong to the tenant lab"):
        apart.start(apart.long())


@pytest.mark.kubernetes
def test_what_somebody_changed_in_the_cluster_is_put_right(apart, small_cluster) -> None:
    keep(apart, "lab", cpu="2")
    namespace = home(apart, "lab")
    (binding,) = listed(
        small_cluster, place := f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    )
    small_cluster.request("DELETE", f"{place}/{binding['metadata']['name']}")
    opened = {"spec": {"ingress": [{}], "egress": [], "policyTypes": ["Ingress", "Egress"]}}
    merge = "application/merge-patch+json"
    small_cluster.request("PATCH", f"{POLICIES.format(namespace)}/hekla", opened, content_type=merge)
    small_cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/resourcequotas/hekla")
    keep(apart, "lab", cpu="2")
    (policy,) = listed(small_cluster, POLICIES.format(namespace))
    assert (policy["spec"]["policyTypes"], "egress" in policy["spec"]) == (["Ingress"], False)
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]
    assert hard(small_cluster, namespace) == [{"requests.cpu": "2"}]


def let_out(plane: ControlPlane, place: Place) -> None:
    """Somebody takes our rights in a tenant's namespace away."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{home(place, 'lab')}/rolebindings"
    for one in listed(plane, path):
        plane.request("DELETE", f"{path}/{one['metadata']['name']}")
    plane.wait_until(lambda: not may_delete(plane, place), 60.0)


def may_delete(plane: ControlPlane, place: Place) -> bool:
    """Whether our rights in a tenant's namespace are in force: the API server reads them some time after a change."""
    body = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": home(place, "lab")}}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(plane.request("POST", reviews, body, token=plane.tenants_token)["status"].get("allowed"))


@pytest.mark.kubernetes
def test_a_pod_is_let_go_and_another_ended_though_somebody_took_our_rights_there(apart, small_cluster) -> None:
    short, long = apart.order(0, script="exit 0"), apart.long(1)
    for order in (short, long):
        apart.started(order)
    seen = {one.key: one.key for one in apart.backend.observe(None).pods}
    apart.ended(short.key)
    let_out(small_cluster, apart)
    path = f"/api/v1/namespaces/{home(apart, 'lab')}/pods"
    small_cluster.wait_until(lambda: _has_let_go(apart, seen[short.key], small_cluster, path), 60.0)
    let_out(small_cluster, apart)
    small_cluster.wait_until(lambda: _is_stopped(apart, long.key), 60.0)
    assert apart.ended(long.key).reason == "Stopped"


def _has_let_go(place: Place, key: PodKey, plane: ControlPlane, path: str) -> bool:
    place.backend.forget([key])
    return key.name not in {one["metadata"]["name"] for one in listed(plane, path)}


def _is_stopped(place: Place, key: PodKey) -> bool:
    try:
        place.stop(key, reason="Enough")
    except BackendError:
        return False
    return True


@pytest.mark.kubernetes
def test_a_pod_with_our_labels_in_a_namespace_of_others_is_not_taken_for_ours(apart, small_cluster, namespace) -> None:
    labels = names.labels("c1", PodKey("job", "worker", 7, 0, tenant="lab"))
    other = small_cluster.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "of-others-"}})
    place = f"/api/v1/namespaces/{other['metadata']['name']}"
    small_cluster.wait_until(lambda: bool(listed(small_cluster, f"{place}/serviceaccounts")))
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": apart.backend.nodes()[0].name}
    small_cluster.request(
        "POST", f"{place}/pods", {"metadata": {"name": "job-worker-7-0", "labels": labels}, "spec": spec}
    )
    assert apart.backend.observe(None).pods == []
    assert apart.backend.inventory().present == set()
    small_cluster.request("DELETE", place)


@pytest.mark.kubernetes
def test_rights_that_are_missing_for_namespaces_of_tenants_are_told(apart, shared, small_cluster) -> None:
    assert asked(small_cluster, apart, small_cluster.tenants_token).missing == ()
    assert set(asked(small_cluster, shared, small_cluster.user_token).missing) == {
        "watch pods *",
        "create namespaces *",
        "get namespaces *",
        "list namespaces *",
        "create rolebindings *",
        "bind clusterroles *",
    }


@pytest.mark.kubernetes
def test_a_role_that_gives_nothing_is_told_by_its_name(apart, small_cluster) -> None:
    apart.config |= {"tenant_role": "hekla-nobody"}
    with pytest.raises(BackendError, match="hekla-nobody"):
        apart.start(apart.long(), at=apart.reopened())


SLUGS = st.from_regex(r"[-a-zA-Z0-9_]{1,40}", fullmatch=True)
BASES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)


@given(BASES, SLUGS, SLUGS)
def test_every_tenant_has_a_namespace_of_its_own_with_a_name_that_kubernetes_takes(base: str, a: str, b: str) -> None:
    first, second = layout.tenant_namespace(base, a), layout.tenant_namespace(base, b)
    assert (first == second) == (a == b)
    assert layout.tenant_namespace(base, names.tenant(a)) == first
    for name in (first, second):
        assert len(name) <= 63
        assert configuration.parse_config(KubernetesConfig, {"namespace": name})
        assert layout.NamespaceLayout(KubernetesConfig(namespace=base, namespaces="tenant")).may_contain(name)
    assert len(names.tenant(a)) <= 63


WRONG = [
    ({"namespaces": "tenant", "scheduler": "volcano"}, "config.namespaces"),
    ({"namespaces": "tenant", "namespace": "a" * 41}, "config.namespace"),
    ({"namespaces": "each"}, "config.namespaces"),
]


@pytest.mark.parametrize(("config", "path"), WRONG)
def test_what_cannot_be_meant_is_told_at_its_field(config: dict[str, str], path: str) -> None:
    with pytest.raises(Invalid) as refused:
        configuration.parse_config(KubernetesConfig, config)
    assert [problem.path for problem in refused.value.problems] == [path]


def test_the_console_in_the_cluster_reaches_pods_and_pods_beside_it_do_not() -> None:
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
def test_which_changes_move_pods_and_which_of_them_lose_sight_of_what_was_there(
    before: dict[str, str], after: dict[str, str], moves: bool, leaves: bool
) -> None:
    assert (layout.moves_pods(before, after), layout.leaves_objects_behind(before, after)) == (moves, leaves)
