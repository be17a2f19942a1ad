"""Pods that others made for the scheduler `hekla`: they are placed, and people see them as jobs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller import conftest
from tests.controller.conftest import SIZE, World
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.kubernetes.plugin import give_inside

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.external_pods.models import ExternalPodRow
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.controller import audit, disruption_budgets
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.errors import Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

Object = dict[str, Any]
pytestmark = pytest.mark.kubernetes
_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"


@pytest.fixture(autouse=True)
def patience_with_controllers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the cluster, for budgets and for what is deleted, take their turns too."""
    monkeypatch.setattr(conftest, "LAST_SECONDS", 120.0)


@pytest.fixture
def others(small_cluster: ControlPlane) -> Iterator[str]:
    """A namespace of somebody else, in which Hekla may place pods and no more."""
    name = _new_namespace(small_cluster)
    give_inside(small_cluster, "rights-adopted.yaml", name)
    yield name
    small_cluster.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def strangers(small_cluster: ControlPlane) -> Iterator[str]:
    """A namespace of which nothing is said."""
    name = _new_namespace(small_cluster)
    yield name
    small_cluster.request("DELETE", f"/api/v1/namespaces/{name}")


def _new_namespace(plane: ControlPlane) -> str:
    body = {"metadata": {"generateName": "others-"}}
    name = str(plane.request("POST", "/api/v1/namespaces", body)["metadata"]["name"])
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    plane.wait_until(lambda: bool(plane.request("GET", accounts)["items"]), 60.0)
    return name


@pytest.fixture
def shared(
    small_cluster: ControlPlane,
    given_namespace: str,
    others: str,
    transactional_db: None,
    settings: Any,
    tmp_path: Path,
) -> Iterator[World]:
    """A machine with four processors that only this test uses, on which pods of others are placed too."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    labels = {"hekla.dev/test": given_namespace}
    machines = small_cluster.add_nodes(1, allocatable=SIZE, labels=labels)
    (tmp_path / "kubeconfigs").mkdir()
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(small_cluster.kubeconfig(small_cluster.user_token)))
    external_pods = {"namespaces": {others: "lab"}, "queue": "default", "owner": "alice"}
    config = {"kubeconfig": "test", "namespace": given_namespace, "node_labels": labels, "external_pods": external_pods}
    world = World.found("kubernetes", config)
    yield world
    backend_of(world.cluster).close()
    controllers.reset()
    small_cluster.remove_nodes(machines)


@pytest.fixture(scope="module")
def pod_groups(small_cluster: ControlPlane) -> Iterator[None]:
    """The kind of object by which Volcano holds pods together, without Volcano."""
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    body = {
        "metadata": {"name": "podgroups.scheduling.volcano.sh"},
        "spec": {
            "group": "scheduling.volcano.sh",
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
            "versions": [version],
        },
    }
    path = f"{place}/podgroups.scheduling.volcano.sh"
    is_ours = not has(small_cluster, path)
    if is_ours:
        small_cluster.request("POST", place, body)
    small_cluster.wait_until(lambda: has(small_cluster, _GROUPS.format("default")), 60.0)
    yield
    if is_ours:
        small_cluster.request("DELETE", path)
        small_cluster.wait_until(lambda: not has(small_cluster, path), 60.0)


def has(plane: ControlPlane, path: str) -> bool:
    try:
        plane.request("GET", path)
    except RequestRefused:
        return False
    return True


def pod(name: str, *, cpu: str = "1", seconds: str = "", exit_code: str = "", **more: Any) -> Object:
    annotations = dict(more.pop("annotations", {}))
    annotations |= {"hekla.dev/test-seconds": f"{seconds}s"} if seconds else {}
    annotations |= {"hekla.dev/test-exit": exit_code} if exit_code else {}
    container = {"name": "any", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    owners = {"ownerReferences": [more.pop("owner")]} if "owner" in more else {}
    return {
        "metadata": {"name": name, "labels": more.pop("labels", {}), "annotations": annotations, **owners},
        "spec": {"schedulerName": "hekla", "restartPolicy": "Never", "containers": [container], **more},
    }


def made_by(plane: ControlPlane, namespace: str, name: str) -> Object:
    """A reference to something that is there and makes pods, as far as anybody knows."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    uid = plane.request("POST", path, {"metadata": {"name": name}})["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}


def make(plane: ControlPlane, namespace: str, body: Object) -> Object:
    return plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def at(plane: ControlPlane, namespace: str, name: str) -> Object:
    return plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")


def delete(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {"gracePeriodSeconds": 0})


def stands(name: str) -> str:
    return next(iter(Job.objects.filter(name=name).values_list("phase", flat=True)), "")


def condition(plane: ControlPlane, namespace: str, name: str) -> str:
    found = at(plane, namespace, name)["status"].get("conditions", [])
    return next((one["message"] for one in found if one.get("reason") == "Unschedulable"), "")


def test_a_pod_of_others_is_placed_and_is_a_job_until_it_ends(shared, small_cluster, others) -> None:
    make(small_cluster, others, pod("alone", seconds="2"))
    shared.turn_until(lambda: stands("alone") == JobPhase.RUNNING)
    job = Job.objects.get()
    assert (job.kind, job.tenant, job.owner, job.queue) == ("adopted", shared.tenant, shared.alice, shared.queue)
    assert at(small_cluster, others, "alone")["spec"]["nodeName"] == job.pods.get().node
    shared.turn_until(lambda: stands("alone") == JobPhase.COMPLETED)
    assert (job.pods.get().phase, job.pods.get().exit_code) == (PodPhase.SUCCEEDED, 0)
    assert at(small_cluster, others, "alone")["status"]["phase"] == "Succeeded"
    assert audit.findings() == []


def test_a_pod_that_fails_is_not_made_again_and_its_job_has_failed(shared, small_cluster, others) -> None:
    make(small_cluster, others, pod("wrong", seconds="0.2", exit_code="3"))
    shared.turn_until(lambda: stands("wrong") == JobPhase.FAILED)
    assert [(one.phase, one.exit_code) for one in Pod.objects.all()] == [(PodPhase.FAILED, 3)]
    assert audit.findings() == []


def test_a_pod_that_its_maker_deletes_ends_its_job(shared, small_cluster, others) -> None:
    make(small_cluster, others, pod("gone"))
    shared.turn_until(lambda: stands("gone") == JobPhase.RUNNING)
    delete(small_cluster, others, "gone")
    shared.turn_until(lambda: stands("gone") == JobPhase.TERMINATED)
    assert Pod.objects.get().phase == PodPhase.LOST
    assert audit.findings() == []


@pytest.mark.parametrize(("code", "end"), [("0", JobPhase.COMPLETED), ("3", JobPhase.FAILED)])
def test_a_pod_that_ended_and_is_deleted_before_anybody_looks_counts_as_what_it_was(
    shared, small_cluster, others, code, end
) -> None:
    make(small_cluster, others, pod("short", seconds="2", exit_code=code))
    shared.turn_until(Pod.objects.exclude(phase=PodPhase.PENDING).exists)
    small_cluster.wait_until(
        lambda: at(small_cluster, others, "short")["status"]["phase"] in ("Succeeded", "Failed"), 120.0
    )
    delete(small_cluster, others, "short")
    shared.turn_until(lambda: stands("short") == end)
    assert Pod.objects.get().exit_code == int(code)
    assert audit.findings() == []


def test_pods_of_one_owner_are_one_job_and_each_is_placed_for_itself(shared, small_cluster, others) -> None:
    """Four processors are there for three pods of two each."""
    owner = made_by(small_cluster, others, "trio")
    for number in range(3):
        make(small_cluster, others, pod(f"trio-{number}", cpu="2", owner=owner))
    shared.turn_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    job = Job.objects.get(name="trio")
    assert (job.replicas, job.phase) == (3, JobPhase.RUNNING)
    assert Pod.objects.filter(phase=PodPhase.PENDING).count() == 1


def test_a_pod_that_is_taken_from_its_owner_stays_in_its_job_and_holds_up_no_other(
    shared, small_cluster, others
) -> None:
    owner = made_by(small_cluster, others, "set")
    for name in ("set-a", "set-b"):
        make(small_cluster, others, pod(name, owner=owner))
    shared.turn_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    path, orphaned = f"/api/v1/namespaces/{others}/pods/set-a", {"metadata": {"ownerReferences": None}}
    small_cluster.request("PATCH", path, orphaned, content_type="application/merge-patch+json")
    make(small_cluster, others, pod("later"))
    shared.turn_until(lambda: stands("later") == JobPhase.RUNNING)
    controllers.reset()
    controllers.reconcile(shared.cluster)
    assert {job.name: job.pods.count() for job in Job.objects.all()} == {"set": 2, "later": 1}
    assert stands("set") == JobPhase.RUNNING
    assert audit.findings() == []


def test_a_pod_that_waits_says_why_on_its_page_and_in_the_cluster(shared, small_cluster, others) -> None:
    make(small_cluster, others, pod("large", cpu="100"))
    shared.turn_until(lambda: bool(condition(small_cluster, others, "large")))
    job = Job.objects.get(name="large")
    assert job.waiting
    assert "CPU" in condition(small_cluster, others, "large")


def test_a_pod_that_asks_for_what_is_not_looked_at_is_left_and_told_so(shared, small_cluster, others) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    make(small_cluster, others, pod("picky", affinity=affinity))
    shared.turn_until(lambda: "affinity" in condition(small_cluster, others, "picky"))
    assert not Job.objects.exists()


def test_pods_of_a_namespace_that_is_not_named_are_left_alone(shared, small_cluster, others, strangers) -> None:
    make(small_cluster, strangers, pod("stranger"))
    make(small_cluster, others, pod("mine"))
    shared.turn_until(lambda: stands("mine") == JobPhase.RUNNING)
    assert [job.name for job in Job.objects.all()] == ["mine"]
    assert "nodeName" not in at(small_cluster, strangers, "stranger")["spec"]


def test_without_the_tenant_that_is_named_a_pod_waits_and_is_told_so(shared, small_cluster, others) -> None:
    shared.tenant.slug = "another"
    shared.tenant.save()
    make(small_cluster, others, pod("homeless"))
    shared.turn_until(lambda: "no tenant" in condition(small_cluster, others, "homeless"))
    assert not Job.objects.exists()


def test_a_controller_that_begins_anew_finds_all_again_and_nothing_twice(shared, small_cluster, others) -> None:
    make(small_cluster, others, pod("long"))
    make(small_cluster, others, pod("short", seconds="0.2"))
    shared.turn_until(lambda: (stands("long"), stands("short")) == (JobPhase.RUNNING, JobPhase.COMPLETED))
    controllers.reset()
    backend_of(shared.cluster).close()
    delete(small_cluster, others, "long")
    shared.turn_until(lambda: stands("long") == JobPhase.TERMINATED)
    assert (Job.objects.count(), Pod.objects.count(), ExternalPodRow.objects.count()) == (2, 2, 2)
    assert audit.findings() == []


def test_a_pod_that_comes_in_place_of_one_that_failed_goes_on_with_its_job(shared, small_cluster, others) -> None:
    owner = made_by(small_cluster, others, "again")
    make(small_cluster, others, pod("again-x", seconds="0.2", exit_code="1", owner=owner))
    shared.turn_until(lambda: stands("again") == JobPhase.FAILED)
    make(small_cluster, others, pod("again-y", seconds="0.2", owner=owner))
    shared.turn_until(lambda: stands("again") == JobPhase.COMPLETED)
    job = Job.objects.get()
    assert [(str(row), row.attempt, row.phase) for row in job.pods.order_by("attempt")] == [
        ("pod-0", 1, PodPhase.FAILED),
        ("pod-0", 2, PodPhase.SUCCEEDED),
    ]
    assert audit.findings() == []


def gang(plane: ControlPlane, namespace: str, name: str, minimum: int, **spec: Any) -> None:
    """A PodGroup; the server may know its kind only since a moment ago."""
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum, **spec},
    }
    plane.request("POST", _GROUPS.format(namespace), body)


def gang_stands(plane: ControlPlane, namespace: str, name: str) -> str:
    found = plane.request("GET", f"{_GROUPS.format(namespace)}/{name}")
    return str(found.get("status", {}).get("phase", ""))


def member(of: str, number: int, **more: Any) -> Object:
    return pod(f"{of}-{number}", annotations={"scheduling.k8s.io/group-name": of}, **more)


def test_a_gang_waits_whole_and_starts_whole(shared, small_cluster, others, pod_groups) -> None:
    """Three pods of two processors each cannot run on four; when a smaller one is in the place of one, they can."""
    gang(small_cluster, others, "trio", 3)
    for number, cpu in enumerate(("1", "2")):
        make(small_cluster, others, member("trio", number, cpu=cpu))
    shared.turn_until(lambda: bool(condition(small_cluster, others, "trio-0")))
    job = Job.objects.get(name="trio")
    assert (job.phase, job.replicas, job.spec["min_available"]) == (JobPhase.PENDING, 3, 3)
    make(small_cluster, others, member("trio", 2, cpu="2"))
    shared.turn_until(lambda: Pod.objects.count() == 3)
    shared.turn_until(lambda: bool(condition(small_cluster, others, "trio-2")))
    assert {one.phase for one in Pod.objects.all()} == {PodPhase.PENDING}
    delete(small_cluster, others, "trio-2")
    shared.turn_until(lambda: Pod.objects.filter(phase=PodPhase.LOST).exists())
    make(small_cluster, others, member("trio", 2))
    shared.turn_until(lambda: stands("trio") == JobPhase.RUNNING)
    assert Pod.objects.filter(phase=PodPhase.RUNNING).count() == 3
    shared.turn_until(lambda: gang_stands(small_cluster, others, "trio") == "Running")
    assert audit.findings() == []


@pytest.fixture
def patient_class(small_cluster: ControlPlane, others: str) -> Iterator[str]:
    """The name of a PriorityClass of the value 70 that evicts nobody."""
    place, name = "/apis/scheduling.k8s.io/v1/priorityclasses", f"patient-{others}"
    small_cluster.request("POST", place, {"metadata": {"name": name}, "value": 70, "preemptionPolicy": "Never"})
    asking = {**pod("asks"), "spec": {**pod("asks")["spec"], "priorityClassName": name}}
    dry = f"/api/v1/namespaces/{others}/pods?dryRun=All"
    small_cluster.wait_until(lambda: takes(small_cluster, dry, asking), 60.0)  # it has heard of the class
    yield name
    small_cluster.request("DELETE", f"{place}/{name}")


def takes(plane: ControlPlane, path: str, body: Object) -> bool:
    try:
        plane.request("POST", path, body)
    except RequestRefused:
        return False
    return True


def test_the_priority_of_a_pod_is_that_of_its_class_in_the_cluster(
    shared, small_cluster, others, patient_class
) -> None:
    make(small_cluster, others, pod("theirs", priorityClassName=patient_class))
    shared.turn_until(lambda: stands("theirs") == JobPhase.RUNNING)
    job = Job.objects.get()
    assert (job.priority, job.never_preempts) == (70, True)


def test_a_gang_that_was_let_in_before_its_pods_has_the_priority_that_they_bring(
    shared, small_cluster, others, pod_groups, patient_class
) -> None:
    shared.cluster.config["external_pods"]["admits_groups"] = True
    shared.cluster.save()
    gang(small_cluster, others, "later", 1, minResources={"cpu": "1"})
    shared.turn_until(lambda: gang_stands(small_cluster, others, "later") == "Inqueue")
    make(small_cluster, others, member("later", 0, priorityClassName=patient_class))
    shared.turn_until(lambda: stands("later") == JobPhase.RUNNING)
    job = Job.objects.get()
    assert (job.priority, job.never_preempts) == (70, True)


def test_a_gang_waits_in_the_queue_that_it_names_where_that_is_ours(shared, small_cluster, others, pod_groups) -> None:
    queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    gang(small_cluster, others, "known", 1, queue="night")
    gang(small_cluster, others, "unknown", 1, queue="nobodys")
    for name in ("known", "unknown"):
        make(small_cluster, others, member(name, 0))
    shared.turn_until(lambda: (stands("known"), stands("unknown")) == (JobPhase.RUNNING,) * 2)
    assert {job.name: job.queue.name for job in Job.objects.all()} == {"known": "night", "unknown": "default"}


def test_a_gang_without_pods_is_let_in_for_those_who_wait_to_make_them(
    shared, small_cluster, others, pod_groups
) -> None:
    shared.cluster.config["external_pods"]["admits_groups"] = True
    shared.cluster.save()
    gang(small_cluster, others, "later", 2, minResources={"cpu": "2"})
    gang(small_cluster, others, "never", 1)
    shared.turn_until(lambda: gang_stands(small_cluster, others, "later") == "Inqueue")
    controllers.reset()
    controllers.reconcile(shared.cluster)
    assert stands("later") == JobPhase.PENDING
    for number in range(2):
        make(small_cluster, others, member("later", number, seconds="1"))
    shared.turn_until(lambda: stands("later") == JobPhase.COMPLETED)
    assert Job.objects.get(name="later").replicas == 2
    shared.turn_until(lambda: gang_stands(small_cluster, others, "never") == "Inqueue")
    small_cluster.request("DELETE", f"{_GROUPS.format(others)}/never")
    shared.turn_until(lambda: stands("never") == JobPhase.TERMINATED)
    assert audit.findings() == []


def test_pods_of_a_gang_that_is_not_there_wait_for_it(shared, small_cluster, others, pod_groups) -> None:
    make(small_cluster, others, member("late", 0))
    shared.turn_until(lambda: "PodGroup" in condition(small_cluster, others, "late-0"))
    assert not Job.objects.exists()
    gang(small_cluster, others, "late", 1)
    shared.turn_until(lambda: stands("late") == JobPhase.RUNNING)


PREEMPTING = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def budget(plane: ControlPlane, namespace: str, labels: dict[str, str], least: int) -> str:
    """The address of a budget that is known to whoever evicts."""
    place = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    body = {"metadata": {"name": "kept"}, "spec": {"minAvailable": least, "selector": {"matchLabels": labels}}}
    plane.request("POST", place, body)
    path = f"{place}/kept"
    plane.wait_until(lambda: plane.request("GET", path).get("status", {}).get("currentHealthy", 0) >= least, 60.0)
    return path


def urgent(world: World) -> Job:
    """A job of ours that needs half of the machine, before all others."""
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "2"}}
    spec = JobSpec.parse({"name": "urgent", "tasks": [task], "priority": 1000})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def pair(world: World, plane: ControlPlane, namespace: str) -> None:
    """Two pods of one maker fill the machine, and one of them would do."""
    clusters.set_policy(world.cluster, PREEMPTING, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    owner = made_by(plane, namespace, "pair")
    for number in range(2):
        make(plane, namespace, pod(f"pair-{number}", cpu="2", owner=owner, labels={"app": "pair"}))
    world.turn_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)


def test_a_pod_of_others_that_must_give_way_is_evicted_from_the_cluster(shared, small_cluster, others) -> None:
    pair(shared, small_cluster, others)
    urgent(shared)
    shared.turn_until(lambda: stands("urgent") == JobPhase.RUNNING)
    left = small_cluster.request("GET", f"/api/v1/namespaces/{others}/pods")["items"]
    assert len(left) == 1
    assert sorted(Pod.objects.filter(job__name="pair").values_list("phase", "reason")) == [
        (PodPhase.FAILED, "Stopped"),
        (PodPhase.RUNNING, ""),
    ]
    assert stands("pair") == JobPhase.RUNNING
    assert audit.findings() == []


def test_a_budget_keeps_a_pod_of_others_until_it_allows_more(shared, small_cluster, others, monkeypatch) -> None:
    monkeypatch.setattr(disruption_budgets, "SPARED_SECONDS", 2.0)
    pair(shared, small_cluster, others)
    kept = budget(small_cluster, others, {"app": "pair"}, 2)
    urgent(shared)
    shared.turn_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists(), "nobody is told of what does not happen"
    assert "budget" in LoggedEvent.objects.filter(kind="PodEvictionBlocked").earliest("id").payload["message"]
    assert len(small_cluster.request("GET", f"/api/v1/namespaces/{others}/pods")["items"]) == 2
    assert not Pod.objects.filter(job__name="pair", phase=PodPhase.FAILED).exists()
    small_cluster.request("DELETE", kept)
    shared.turn_until(lambda: stands("urgent") == JobPhase.RUNNING)
    assert audit.findings() == []


def test_a_budget_keeps_a_pod_of_ours_too_but_not_from_a_person(
    shared, small_cluster, given_namespace, monkeypatch
) -> None:
    monkeypatch.setattr(disruption_budgets, "SPARED_SECONDS", 2.0)
    clusters.set_policy(shared.cluster, PREEMPTING, note="", by=shared.alice, actor=PLATFORM, now=clock.now())
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "2"}, "replicas": 2, "min_available": 1}
    spec = JobSpec.parse({"name": "ours", "tasks": [task]})
    job = services.submit(spec=spec, tenant=shared.tenant, user=shared.alice, now=clock.now())
    shared.turn_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    budget(small_cluster, given_namespace, {"hekla.dev/job": job.uid.hex}, 2)
    urgent(shared)
    shared.turn_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists(), "nobody is told of what does not happen"
    assert Pod.objects.filter(job=job, phase=PodPhase.RUNNING).count() == 2
    services.command(job, LifecycleAction.ABORT_JOB, user=shared.alice, now=clock.now())
    shared.turn_until(lambda: (stands("ours"), stands("urgent")) == (JobPhase.ABORTED, JobPhase.RUNNING))
    assert audit.findings() == []


def ours(world: World, name: str, replicas: int, cpu: str, priority: int) -> Job:
    """A job of ours of which one pod would do."""
    task = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "replicas": replicas, "min_available": 1}
    spec = JobSpec.parse({"name": name, "tasks": [task], "priority": priority})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_of_several_pods_of_ours_no_more_go_at_once_than_a_budget_allows(
    shared, small_cluster, given_namespace
) -> None:
    """Each of them might go alone."""
    clusters.set_policy(shared.cluster, PREEMPTING, note="", by=shared.alice, actor=PLATFORM, now=clock.now())
    job = ours(shared, "crowd", 4, "1", 0)
    running = Pod.objects.filter(job=job, phase=PodPhase.RUNNING)
    shared.turn_until(lambda: running.count() == 4)
    kept = budget(small_cluster, given_namespace, {"hekla.dev/job": job.uid.hex}, 3)
    small_cluster.wait_until(lambda: small_cluster.request("GET", kept)["status"].get("disruptionsAllowed") == 1, 60.0)
    urgent(shared)
    shared.turn_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists(), "two would have to go"
    assert running.count() == 4
    ours(shared, "small", 1, "1", 2000)
    ours(shared, "next", 1, "1", 1999)
    shared.turn_until(lambda: stands("small") == JobPhase.RUNNING)
    for _ in range(3):
        controllers.reconcile(shared.cluster)
    assert (running.count(), stands("next"), stands("urgent")) == (3, JobPhase.PENDING, JobPhase.PENDING)
    assert LoggedEvent.objects.filter(kind="PodEvicted").count() == 1
    assert audit.findings() == []


def test_nobody_ends_or_makes_such_a_job_from_the_console(shared, small_cluster, others) -> None:
    make(small_cluster, others, pod("theirs"))
    shared.turn_until(lambda: stands("theirs") == JobPhase.RUNNING)
    with pytest.raises(Refused):
        services.command(Job.objects.get(), LifecycleAction.ABORT_JOB, user=shared.alice, now=clock.now())
    spec = JobSpec.parse({"name": "one", "kind": "adopted", "tasks": [{"name": "main", "command": ["x"]}]})
    with pytest.raises(Invalid):
        services.submit(spec=spec, tenant=shared.tenant, user=shared.alice, now=clock.now())
