"""The chart on a real API server: accepted objects, pods under Pod Security, exact permissions."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.deploy.chart import CHART, MINIMAL, OF_FILES, Object, full_values, of_kind, render, run
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.kubernetes.plugin import new_namespace
from tests.kubernetes.volcano.processes import Volcano

from hekla.backends.base import PodKey
from hekla.backends.delegated import DelegatedJobSize, QueueOrder
from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.permissions import REQUIRED, REQUIRED_WITH_VOLCANO, required_permissions
from hekla.backends.kubernetes.volcano import VolcanoBackend
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_STRICT = "fieldManager=test&fieldValidation=Strict&force=true"
_POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "of-a-job"},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}


@dataclass
class Installed:
    """A release: its namespace, the namespace of its jobs, and its objects."""

    plane: ControlPlane
    namespace: str
    objects: list[Object]
    _known: dict[str, list[Object]] = field(default_factory=dict)

    @property
    def jobs(self) -> str:
        """The namespace of the jobs' pods."""
        return f"{self.namespace}-jobs"

    def path(self, one: Object) -> str:
        """The path of this object on the API server."""
        group = "api" if one["apiVersion"] == "v1" else "apis"
        known = self._resources(f"/{group}/{one['apiVersion']}")
        (found,) = [kind for kind in known if kind["kind"] == one["kind"] and "/" not in kind["name"]]
        namespace = one["metadata"].get("namespace", self.namespace)
        inside = f"namespaces/{namespace}/" if found["namespaced"] else ""
        return f"/{group}/{one['apiVersion']}/{inside}{found['name']}/{one['metadata']['name']}"

    def _resources(self, group: str) -> list[Object]:
        if group not in self._known:
            self._known[group] = self.plane.request("GET", group)["resources"]
        return self._known[group]

    def apply(self) -> None:
        """Apply all objects, as `kubectl apply --server-side --validate=strict` does."""
        for one in self.objects:
            path = f"{self.path(one)}?{_STRICT}"
            self.plane.request("PATCH", path, one, content_type="application/apply-patch+yaml")

    def remove(self) -> None:
        """Delete the objects that are not deleted with their namespace."""
        for one in self.objects:
            if one["kind"] == "Namespace" or "ClusterRole" in one["kind"] or "Admission" in one["kind"]:
                self.plane.request("DELETE", self.path(one))

    def pods(self) -> list[Object]:
        """The pods in the namespace of the console."""
        items: list[Object] = self.plane.request("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return items

    @cached_property
    def token(self) -> str:
        """A token of the chart's service account."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/hekla/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self.plane.request("POST", path, body)["status"]["token"]
        return token

    def may(self, verb: str, resource: str, namespace: str = "", group: str = "") -> bool:
        """Whether the chart's service account has this permission, by a SelfSubjectAccessReview."""
        name, _, below = resource.partition("/")
        attributes = {"verb": verb, "resource": name, "subresource": below, "namespace": namespace, "group": group}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        allowed: bool = self.plane.request("POST", path, body, token=self.token)["status"]["allowed"]
        return allowed


@pytest.fixture
def restricted_namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace with the Pod Security level `restricted`."""
    with new_namespace(control_plane, _RESTRICTED) as name:
        yield name


# The tests of a release share it, because they leave its objects as they are.


@pytest.fixture(scope="module", params=["minimal", "full"])
def installed(request: pytest.FixtureRequest, helm: Path, control_plane: ControlPlane) -> Iterator[Installed]:
    with release(helm, control_plane, MINIMAL if request.param == "minimal" else full_values()) as made:
        yield made


@pytest.fixture(scope="module")
def with_volcano(helm: Path, volcano: Volcano) -> Iterator[Installed]:
    """A release whose jobs Volcano schedules."""
    with release(helm, volcano.plane, {**MINIMAL, "jobs": {"scheduledByVolcano": True}}) as made:
        yield made


@pytest.fixture(scope="module")
def with_ports(helm: Path, control_plane: ControlPlane) -> Iterator[Installed]:
    """A release that exposes the ports of jobs."""
    with release(helm, control_plane, {**MINIMAL, "jobs": {"portsOutside": True}}) as made:
        yield made


@contextmanager
def release(helm: Path, plane: ControlPlane, values: Mapping[str, Any]) -> Iterator[Installed]:
    """The objects of the chart in a new namespace."""
    with new_namespace(plane, _RESTRICTED) as namespace:
        jobs = {**values.get("jobs", {}), "namespace": f"{namespace}-jobs"}
        objects = render(helm, {**values, "jobs": jobs}, *OF_FILES, namespace=namespace)
        prometheus_kinds = ("PodMonitor", "PrometheusRule")  # their operator is not installed
        made = Installed(plane, namespace, [one for one in objects if one["kind"] not in prometheus_kinds])
        made.apply()
        yield made
        made.remove()


def test_api_server_accepts_every_object_and_admits_restricted_pods(installed: Installed) -> None:
    deployments = of_kind(installed.objects, "Deployment")
    expected = sum(one["spec"]["replicas"] for one in deployments) + len(of_kind(installed.objects, "Job"))
    installed.plane.wait_until(lambda: len(installed.pods()) == expected, 120)
    trusted = [one for one in installed.pods() if "serviceAccountToken" in str(one["spec"]["volumes"])]
    assert {one["spec"]["containers"][0]["name"] for one in trusted} == {"web", "control"}


def test_applying_again_changes_nothing(installed: Installed) -> None:
    path = installed.path(of_kind(installed.objects, "Service")[0])
    before = installed.plane.request("GET", path)["metadata"]["resourceVersion"]
    installed.apply()
    assert installed.plane.request("GET", path)["metadata"]["resourceVersion"] == before


def test_account_has_the_required_permissions(installed: Installed) -> None:
    for right in REQUIRED:
        namespace = "" if right.everywhere else installed.jobs
        assert installed.may(right.verb, right.resource, namespace, right.group), right


def test_account_has_no_other_permissions(installed: Installed) -> None:
    for namespace in (installed.namespace, "default", "kube-system", ""):
        for verb in ("get", "list", "create"):
            assert not installed.may(verb, "secrets", namespace)
        assert not installed.may("create", "pods", namespace)
        assert not installed.may("get", "pods/log", namespace)
        assert not installed.may("create", "pods/exec", namespace)
        assert not installed.may("create", "networkpolicies", namespace, "networking.k8s.io")
    assert not installed.may("get", "secrets", installed.jobs)
    for subresource in ("pods/attach", "pods/exec", "pods/portforward"):
        for verb in ("create", "get"):
            assert not installed.may(verb, subresource, installed.jobs)
    assert not installed.may("delete", "nodes")
    assert not installed.may("create", "clusterrolebindings")


def test_account_may_expose_ports_in_the_job_namespace_only(with_ports: Installed) -> None:
    ingress = {"domain": "jobs.example.org", "class_name": "nginx", "namespace": "ingress-nginx"}
    more = set(required_permissions(KubernetesConfig.model_validate({"ingress": ingress}))) - set(REQUIRED)
    assert more
    for right in more:
        assert with_ports.may(right.verb, right.resource, with_ports.jobs, right.group), right
        assert not with_ports.may(right.verb, right.resource, with_ports.namespace, right.group), right


def test_account_has_the_permissions_for_volcano(with_volcano: Installed) -> None:
    for right in REQUIRED_WITH_VOLCANO:
        namespace = "" if right.everywhere else with_volcano.jobs
        assert with_volcano.may(right.verb, right.resource, namespace, right.group), right


def test_account_has_no_other_permissions_for_volcano(with_volcano: Installed) -> None:
    for verb in ("create", "list", "patch", "delete"):
        assert not with_volcano.may(verb, "jobs", "default", "batch.volcano.sh")
        assert not with_volcano.may(verb, "jobs", with_volcano.jobs, "batch")
    for verb in ("get", "list", "delete"):
        assert not with_volcano.may(verb, "commands", with_volcano.jobs, "bus.volcano.sh")
    for verb in ("create", "patch", "update", "delete"):
        assert not with_volcano.may(verb, "podgroups", with_volcano.jobs, "scheduling.volcano.sh")
        assert not with_volcano.may(verb, "events", with_volcano.jobs)
    assert not with_volcano.may("create", "commands", "default", "bus.volcano.sh")
    assert not with_volcano.may("delete", "queues", "", "scheduling.volcano.sh")


def test_without_volcano_the_account_has_no_permissions_for_it(installed: Installed) -> None:
    """Except for queues, if the release shows Hekla's queues on the cluster."""
    shows_queues = any(
        "adopted-queues" in role["metadata"]["name"] for role in of_kind(installed.objects, "ClusterRole")
    )
    for right in set(REQUIRED_WITH_VOLCANO) - set(REQUIRED):
        if right.resource == "queues" and shows_queues:
            continue
        namespace = "" if right.everywhere else installed.jobs
        assert not installed.may(right.verb, right.resource, namespace, right.group), right


def test_account_token_runs_a_delegated_job(with_volcano: Installed, tmp_path: Path) -> None:
    plane, namespace = with_volcano.plane, with_volcano.jobs
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(plane.kubeconfig(with_volcano.token)))
    config = KubernetesConfig(kubeconfig="test", namespace=namespace, scheduler="volcano")
    backend = VolcanoBackend(config, BackendContext(with_volcano.namespace, tmp_path, clock.now))
    delegated = backend.delegated
    job, queue = uuid4().hex, QueueOrder(with_volcano.namespace, weight=1, priority=0, reclaimable=True)
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "one", "queue": queue.name, "files": {"a": "b"}, "tasks": [task]})
    larger = JobSpec.parse({**spec.document(), "tasks": [{**task, "replicas": 2}]})
    try:
        delegated.apply_queue(queue)
        delegated.submit(job, spec, tenant="lab")
        plane.wait_until(lambda: delegated.list_jobs()[job].phase is JobPhase.RUNNING, 90)
        (pod,) = delegated.list_new_pods()
        delegated.assign_attempt(pod, PodKey(job, "main", 0, 1))
        assert [one.observation.key.job for one in delegated.list_pods(fresh=True)] == [job]
        delegated.apply_queue(replace(queue, weight=2))
        delegated.resize(job, DelegatedJobSize.of(larger), heartbeat=lambda: None)
        assert delegated.list_jobs()[job].size == DelegatedJobSize.of(larger)
        delegated.request(job, LifecycleAction.ABORT_JOB, restarts=0, heartbeat=lambda: None)
        plane.wait_until(lambda: delegated.list_jobs()[job].phase is JobPhase.ABORTED, 90)
        backend.remove(job)
        assert delegated.list_jobs() == {}
    finally:
        backend.close()
        plane.request("DELETE", f"/apis/scheduling.volcano.sh/v1beta1/queues/{queue.name}")


def test_account_token_creates_pods_but_reads_no_secrets_elsewhere(installed: Installed) -> None:
    token, plane = installed.token, installed.plane
    accounts = f"/api/v1/namespaces/{installed.jobs}/serviceaccounts"
    plane.wait_until(lambda: bool(plane.request("GET", accounts)["items"]))  # pods need a service account
    made = plane.request("POST", f"/api/v1/namespaces/{installed.jobs}/pods", _POD, token=token)
    assert made["metadata"]["name"] == "of-a-job"
    secret = {"metadata": {"name": "hekla"}, "data": {"HEKLA_SECRET_KEY": base64.b64encode(b"no example").decode()}}
    secrets = f"/api/v1/namespaces/{installed.namespace}/secrets"
    plane.request("POST", secrets, secret)
    for path in (secrets, f"{secrets}/hekla"):
        with pytest.raises(RequestRefused) as refused:
            plane.request("GET", path, token=token)
        assert refused.value.status == 403


def test_unknown_field_is_refused(installed: Installed) -> None:
    (service,) = of_kind(installed.objects, "Service")
    odd = {**service, "spec": {**service["spec"], "selektor": {}}}
    path = f"{installed.path(service)}?{_STRICT}"
    with pytest.raises(RequestRefused, match="selektor"):
        installed.plane.request("PATCH", path, odd, content_type="application/apply-patch+yaml")


def test_helm_install_upgrade_rollback_and_uninstall_keep_the_data(
    helm: Path, control_plane: ControlPlane, restricted_namespace: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(control_plane.kubeconfig()))
    jobs = f"{restricted_namespace}-jobs"
    values = {**MINIMAL, "jobs": {"namespace": jobs}}
    # Without hooks: no kubelet runs the pods that they wait for.
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={restricted_namespace}", "--no-hooks"]
    notes = run(helm, values, "install", "hekla", str(CHART), *flags)
    assert "exec deployment/hekla-web -- python -m django setup_first_data" in notes
    web = f"/apis/apps/v1/namespaces/{restricted_namespace}/deployments/hekla-web"
    assert control_plane.request("GET", web)["spec"]["replicas"] == 2
    run(helm, {**values, "web": {"replicas": 4}}, "upgrade", "hekla", str(CHART), *flags)
    assert control_plane.request("GET", web)["spec"]["replicas"] == 4
    run(helm, {}, "rollback", "hekla", "1", *flags)
    assert control_plane.request("GET", web)["spec"]["replicas"] == 2

    run(helm, {}, "uninstall", "hekla", *flags)
    with pytest.raises(RequestRefused, match="not found"):
        control_plane.request("GET", web)
    folder = f"/api/v1/namespaces/{restricted_namespace}/persistentvolumeclaims/hekla-data"
    assert control_plane.request("GET", folder)["metadata"]["name"] == "hekla-data"
    control_plane.request("DELETE", f"/api/v1/namespaces/{jobs}")
