"""A real API server takes what the chart makes, lets its pods into a guarded namespace, and gives the rights needed."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.deploy.chart import CHART, MINIMAL, OF_FILES, Object, full, of_kind, render, run
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
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
    yield from release(helm, control_plane, guarded, MINIMAL if request.param == "minimal" else full())


@pytest.fixture
def with_volcano(helm: Path, volcano: Volcano, guarded: str) -> Iterator[Installed]:
    """Where Volcano is installed, which is to schedule the jobs."""
    yield from release(helm, volcano.plane, guarded, {**MINIMAL, "jobs": {"scheduledByVolcano": True}})


@pytest.fixture
def with_ports(helm: Path, control_plane: ControlPlane, guarded: str) -> Iterator[Installed]:
    """Where people outside reach ports that jobs name."""
    yield from release(helm, control_plane, guarded, {**MINIMAL, "jobs": {"portsOutside": True}})


def release(helm: Path, plane: ControlPlane, namespace: str, values: Mapping[str, Any]) -> Iterator[Installed]:
    jobs = {**values.get("jobs", {}), "namespace": f"{namespace}-jobs"}
    objects = render(helm, {**values, "jobs": jobs}, *OF_FILES, namespace=namespace)
    of_prometheus = ("PodMonitor", "PrometheusRule")  # kinds of an operator that is not here
    made = Installed(plane, namespace, [one for one in objects if one["kind"] not in of_prometheus])
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
    for right in REQUIRED:
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


def test_the_account_may_lead_ports_outside_where_jobs_are_and_only_there(with_ports: Installed) -> None:
    ingress = {"domain": "jobs.example.org", "class_name": "nginx", "namespace": "ingress-nginx"}
    more = set(required_permissions(KubernetesConfig.model_validate({"ingress": ingress}))) - set(REQUIRED)
    assert more
    for right in more:
        assert with_ports.may(right.verb, right.resource, with_ports.jobs, right.group), right
        assert not with_ports.may(right.verb, right.resource, with_ports.namespace, right.group), right


def test_the_account_may_do_what_jobs_of_volcano_need(with_volcano: Installed) -> None:
    for right in REQUIRED_WITH_VOLCANO:
        place = "" if right.everywhere else with_volcano.jobs
        assert with_volcano.may(right.verb, right.resource, place, right.group), right


def test_the_account_may_do_nothing_else_with_what_is_volcanos(with_volcano: Installed) -> None:
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


def test_without_volcano_the_account_may_do_nothing_with_what_is_its(installed: Installed) -> None:
    """But with queues, which it shows to others where that is asked for."""
    shows_queues = any(
        "adopted-queues" in role["metadata"]["name"] for role in of_kind(installed.objects, "ClusterRole")
    )
    for right in set(REQUIRED_WITH_VOLCANO) - set(REQUIRED):
        if right.resource == "queues" and shows_queues:
            continue
        place = "" if right.everywhere else installed.jobs
        assert not installed.may(right.verb, right.resource, place, right.group), right


def test_with_its_token_a_job_is_led_from_its_queue_to_its_end(with_volcano: Installed, tmp_path: Path) -> None:
    plane, place = with_volcano.plane, with_volcano.jobs
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(plane.kubeconfig(with_volcano.token())))
    config = KubernetesConfig(kubeconfig="test", namespace=place, scheduler="volcano")
    backend = VolcanoBackend(config, BackendContext(with_volcano.namespace, tmp_path, clock.now))
    delegated = backend.delegated
    job, queue = uuid4().hex, QueueOrder(with_volcano.namespace, weight=1, priority=0, reclaimable=True)
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "one", "queue": queue.name, "files": {"a": "b"}, "tasks": [task]})
    larger = JobSpec.parse({**spec.document(), "tasks": [{**task, "replicas": 2}]})
    try:
        delegated.apply_queue(queue)
        delegated.submit(job, spec)
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
