"""A real API server takes what the chart makes, lets its pods into a guarded namespace, and gives the rights needed."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.deploy.chart import CHART, MINIMAL, OF_FILES, Object, full, of_kind, render, run
from tests.kubernetes.control_plane import ControlPlane, RequestRefused

from hekla.backends.kubernetes.rights import NEEDED

_STRICT = "fieldManager=test&fieldValidation=Strict&force=true"
_POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "of-a-job"},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}


@dataclass
class Installed:
    """A release: its own namespace, that of its jobs, and what was made."""

    plane: ControlPlane
    namespace: str
    objects: list[Object]

    @property
    def jobs(self) -> str:
        """Where the pods of people are."""
        return f"{self.namespace}-jobs"

    def path(self, one: Object) -> str:
        """Where the API server keeps this object."""
        group = "api" if one["apiVersion"] == "v1" else "apis"
        known = self.plane.request("GET", f"/{group}/{one['apiVersion']}")["resources"]
        (found,) = [kind for kind in known if kind["kind"] == one["kind"] and "/" not in kind["name"]]
        namespace = one["metadata"].get("namespace", self.namespace)
        inside = f"namespaces/{namespace}/" if found["namespaced"] else ""
        return f"/{group}/{one['apiVersion']}/{inside}{found['name']}/{one['metadata']['name']}"

    def apply(self) -> None:
        """Make everything, as `kubectl apply --server-side --validate=strict` does."""
        for one in self.objects:
            path = f"{self.path(one)}?{_STRICT}"
            self.plane.request("PATCH", path, one, content_type="application/apply-patch+yaml")

    def remove(self) -> None:
        """What the namespaces do not take along when they go."""
        for one in self.objects:
            if "ClusterRole" in one["kind"] or one["kind"] == "Namespace":
                self.plane.request("DELETE", self.path(one))

    def pods(self) -> list[Object]:
        """Those that the API server let into the namespace of the console."""
        items: list[Object] = self.plane.request("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return items

    def token(self) -> str:
        """What proves to be the account of the chart."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/hekla/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self.plane.request("POST", path, body)["status"]["token"]
        return token

    def may(self, verb: str, resource: str, namespace: str = "", group: str = "") -> bool:
        """Whether the account of the chart may do this, as the API server answers it."""
        name, _, below = resource.partition("/")
        asked = {"verb": verb, "resource": name, "subresource": below, "namespace": namespace, "group": group}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        allowed: bool = self.plane.request("POST", path, body, token=self.token())["status"]["allowed"]
        return allowed


@pytest.fixture
def guarded(control_plane: ControlPlane, namespace: str) -> str:
    """A namespace in which only pods without any power are made."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    control_plane.request(
        "PATCH",
        f"/api/v1/namespaces/{namespace}",
        {"metadata": {"labels": labels}},
        content_type="application/merge-patch+json",
    )
    return namespace


@pytest.fixture(params=["minimal", "full"])
def installed(
    request: pytest.FixtureRequest, helm: Path, control_plane: ControlPlane, guarded: str
) -> Iterator[Installed]:
    values = {**(MINIMAL if request.param == "minimal" else full())}
    values["jobs"] = {**values.get("jobs", {}), "namespace": f"{guarded}-jobs"}
    objects = render(helm, values, *OF_FILES, namespace=guarded)
    of_prometheus = ("PodMonitor", "PrometheusRule")  # kinds of an operator that is not here
    made = Installed(control_plane, guarded, [one for one in objects if one["kind"] not in of_prometheus])
    made.apply()
    yield made
    made.remove()


def test_the_api_server_takes_every_object_and_lets_pods_in_that_have_no_power(installed: Installed) -> None:
    deployments = of_kind(installed.objects, "Deployment")
    expected = sum(one["spec"]["replicas"] for one in deployments) + len(of_kind(installed.objects, "Job"))
    installed.plane.wait_until(lambda: len(installed.pods()) == expected, 120)
    trusted = [one for one in installed.pods() if "serviceAccountToken" in str(one["spec"]["volumes"])]
    assert {one["spec"]["containers"][0]["name"] for one in trusted} == {"web", "control"}


def test_a_second_look_changes_nothing(installed: Installed) -> None:
    path = installed.path(of_kind(installed.objects, "Service")[0])
    before = installed.plane.request("GET", path)["metadata"]["resourceVersion"]
    installed.apply()
    assert installed.plane.request("GET", path)["metadata"]["resourceVersion"] == before


def test_the_account_may_do_what_pods_of_jobs_need(installed: Installed) -> None:
    for right in NEEDED:
        place = "" if right.everywhere else installed.jobs
        assert installed.may(right.verb, right.resource, place, right.group), right


def test_the_account_may_do_nothing_else(installed: Installed) -> None:
    for namespace in (installed.namespace, "default", "kube-system", ""):
        for verb in ("get", "list", "create"):
            assert not installed.may(verb, "secrets", namespace)
        assert not installed.may("create", "pods", namespace)
        assert not installed.may("get", "pods/log", namespace)
        assert not installed.may("create", "pods/exec", namespace)
        assert not installed.may("create", "networkpolicies", namespace, "networking.k8s.io")
    assert not installed.may("get", "secrets", installed.jobs)
    assert not installed.may("create", "pods/attach", installed.jobs)
    assert not installed.may("delete", "nodes")
    assert not installed.may("create", "clusterrolebindings")


def test_with_its_token_a_pod_is_made_where_jobs_are_and_no_secret_is_read_elsewhere(installed: Installed) -> None:
    token, plane = installed.token(), installed.plane
    accounts = f"/api/v1/namespaces/{installed.jobs}/serviceaccounts"
    plane.wait_until(lambda: bool(plane.request("GET", accounts)["items"]))  # no pod without one
    made = plane.request("POST", f"/api/v1/namespaces/{installed.jobs}/pods", _POD, token=token)
    assert made["metadata"]["name"] == "of-a-job"
    key = {"metadata": {"name": "hekla"}, "data": {"HEKLA_SECRET_KEY": base64.b64encode(b"no example").decode()}}
    secrets = f"/api/v1/namespaces/{installed.namespace}/secrets"
    plane.request("POST", secrets, key)
    for path in (secrets, f"{secrets}/hekla"):
        with pytest.raises(RequestRefused) as refused:
            plane.request("GET", path, token=token)
        assert refused.value.status == 403


def test_what_the_schema_of_kubernetes_does_not_know_is_refused(installed: Installed) -> None:
    (service,) = of_kind(installed.objects, "Service")
    odd = {**service, "spec": {**service["spec"], "selektor": {}}}
    path = f"{installed.path(service)}?{_STRICT}"
    with pytest.raises(RequestRefused, match="selektor"):
        installed.plane.request("PATCH", path, odd, content_type="application/apply-patch+yaml")


def test_helm_installs_changes_goes_back_removes_and_leaves_what_people_made(
    helm: Path, control_plane: ControlPlane, guarded: str, tmp_path: Path
) -> None:
    key = tmp_path / "kubeconfig"
    key.write_text(json.dumps(control_plane.kubeconfig()))
    jobs = f"{guarded}-jobs"
    values = {**MINIMAL, "jobs": {"namespace": jobs}}
    # Without hooks: no machine here does what they wait for.
    where = [f"--kubeconfig={key}", f"--namespace={guarded}", "--no-hooks"]
    notes = run(helm, values, "install", "hekla", str(CHART), *where)
    assert "exec deployment/hekla-web -- python -m django setup_first_data" in notes
    web = f"/apis/apps/v1/namespaces/{guarded}/deployments/hekla-web"
    assert control_plane.request("GET", web)["spec"]["replicas"] == 2
    run(helm, {**values, "web": {"replicas": 4}}, "upgrade", "hekla", str(CHART), *where)
    assert control_plane.request("GET", web)["spec"]["replicas"] == 4
    run(helm, {}, "rollback", "hekla", "1", *where)
    assert control_plane.request("GET", web)["spec"]["replicas"] == 2

    run(helm, {}, "uninstall", "hekla", *where)
    with pytest.raises(RequestRefused, match="not found"):
        control_plane.request("GET", web)
    folder = f"/api/v1/namespaces/{guarded}/persistentvolumeclaims/hekla-data"
    assert control_plane.request("GET", folder)["metadata"]["name"] == "hekla-data"
    control_plane.request("DELETE", f"/api/v1/namespaces/{jobs}")
