"""External pods with the scheduler name `hekla`: Hekla places them and shows them as jobs."""

from collections.abc import Iterator

import pytest
from tests.controller.external_pods import (
    Object,
    condition,
    create_pod,
    create_pod_group,
    delete_pod,
    external_namespace,
    get_pod,
    long_patience,
    member,
    new_owner,
    phase_of,
    pod,
    pod_group_phase,
    pod_groups,
    shared,
    unlisted_namespace,
)
from tests.kubernetes.control_plane import ControlPlane, RequestRefused

from hekla.apps.event_log.services import PLATFORM
from hekla.apps.external_pods.models import ExternalPodRow
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.controller import audit
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.errors import Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["external_namespace", "long_patience", "pod_groups", "shared", "unlisted_namespace"]
pytestmark = pytest.mark.kubernetes
_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"


def test_external_pod_is_placed_and_is_a_job_until_it_ends(shared, small_cluster, external_namespace) -> None:
    create_pod(small_cluster, external_namespace, pod("alone", seconds="2"))
    shared.reconcile_until(lambda: phase_of("alone") == JobPhase.RUNNING)
    job = Job.objects.get()
    assert (job.kind, job.tenant, job.owner, job.queue) == ("adopted", shared.tenant, shared.alice, shared.queue)
    assert get_pod(small_cluster, external_namespace, "alone")["spec"]["nodeName"] == job.pods.get().node
    shared.reconcile_until(lambda: phase_of("alone") == JobPhase.COMPLETED)
    assert (job.pods.get().phase, job.pods.get().exit_code) == (PodPhase.SUCCEEDED, 0)
    assert get_pod(small_cluster, external_namespace, "alone")["status"]["phase"] == "Succeeded"
    assert audit.findings() == []


def test_card_of_an_external_pod_is_in_its_annotations(shared, small_cluster, external_namespace) -> None:
    amounts = {"volcano.sh/gpu-memory": "8192", "volcano.sh/gpu-number": "1"}
    (name,) = [node.name for node in backend_of(shared.cluster).nodes()]
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    path, content_type = f"/api/v1/nodes/{name}/status", "application/merge-patch+json"
    small_cluster.request("PATCH", path, status, content_type=content_type)
    amount = {"volcano.sh/gpu-memory": "1024"}
    container = {"name": "any", "image": "x", "resources": {"requests": amount, "limits": amount}}
    create_pod(small_cluster, external_namespace, pod("alone", containers=[container]))
    shared.reconcile_until(lambda: phase_of("alone") == JobPhase.RUNNING)
    annotations = get_pod(small_cluster, external_namespace, "alone")["metadata"]["annotations"]
    assert annotations["volcano.sh/gpu-index"] == "0"
    assert [card["part_mib"] for card in Pod.objects.get().cards] == [1024]


def test_failed_external_pod_fails_its_job_and_is_not_recreated(shared, small_cluster, external_namespace) -> None:
    create_pod(small_cluster, external_namespace, pod("wrong", seconds="0.2", exit_code="3"))
    shared.reconcile_until(lambda: phase_of("wrong") == JobPhase.FAILED)
    assert [(one.phase, one.exit_code) for one in Pod.objects.all()] == [(PodPhase.FAILED, 3)]
    assert audit.findings() == []


def test_deleted_external_pod_terminates_its_job(shared, small_cluster, external_namespace) -> None:
    create_pod(small_cluster, external_namespace, pod("gone"))
    shared.reconcile_until(lambda: phase_of("gone") == JobPhase.RUNNING)
    delete_pod(small_cluster, external_namespace, "gone")
    shared.reconcile_until(lambda: phase_of("gone") == JobPhase.TERMINATED)
    assert Pod.objects.get().phase == PodPhase.LOST
    assert audit.findings() == []


def test_pod_that_its_deletion_makes_fail_has_not_failed(shared, small_cluster, external_namespace) -> None:
    one, path = pod("killed"), f"/api/v1/namespaces/{external_namespace}/pods/killed"
    one["metadata"]["finalizers"] = ["hekla.dev/test"]  # it stays for a while
    create_pod(small_cluster, external_namespace, one)
    shared.reconcile_until(lambda: phase_of("killed") == JobPhase.RUNNING)
    small_cluster.request("DELETE", path)
    small_cluster.wait_until(lambda: small_cluster.request("GET", path)["status"]["phase"] == "Failed", 120.0)
    controllers.reset()  # the next one lists the pods anew
    controllers.reconcile(shared.cluster)
    assert phase_of("killed") == JobPhase.RUNNING
    change = {"metadata": {"finalizers": None}}
    small_cluster.request("PATCH", path, change, content_type="application/merge-patch+json")
    shared.reconcile_until(lambda: phase_of("killed") == JobPhase.TERMINATED)
    assert Pod.objects.get().phase == PodPhase.LOST


@pytest.mark.parametrize(("code", "end"), [("0", JobPhase.COMPLETED), ("3", JobPhase.FAILED)])
def test_pod_deleted_after_its_end_keeps_its_result(shared, small_cluster, external_namespace, code, end) -> None:
    create_pod(small_cluster, external_namespace, pod("short", seconds="2", exit_code=code))
    shared.reconcile_until(Pod.objects.exclude(phase=PodPhase.PENDING).exists)
    small_cluster.wait_until(
        lambda: get_pod(small_cluster, external_namespace, "short")["status"]["phase"] in ("Succeeded", "Failed"), 120.0
    )
    delete_pod(small_cluster, external_namespace, "short")
    shared.reconcile_until(lambda: phase_of("short") == end)
    assert Pod.objects.get().exit_code == int(code)
    assert audit.findings() == []


def test_pods_of_one_owner_are_one_job_and_are_placed_one_by_one(shared, small_cluster, external_namespace) -> None:
    """Four CPUs for three pods of two CPUs each."""
    owner = new_owner(small_cluster, external_namespace, "trio")
    for number in range(3):
        create_pod(small_cluster, external_namespace, pod(f"trio-{number}", cpu="2", owner=owner))
    shared.reconcile_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    job = Job.objects.get(name="trio")
    assert (job.replicas, job.phase) == (3, JobPhase.RUNNING)
    assert Pod.objects.filter(phase=PodPhase.PENDING).count() == 1


def test_orphaned_pod_stays_in_its_job_and_delays_no_other(shared, small_cluster, external_namespace) -> None:
    owner = new_owner(small_cluster, external_namespace, "set")
    for name in ("set-a", "set-b"):
        create_pod(small_cluster, external_namespace, pod(name, owner=owner))
    shared.reconcile_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    path, orphaned = f"/api/v1/namespaces/{external_namespace}/pods/set-a", {"metadata": {"ownerReferences": None}}
    small_cluster.request("PATCH", path, orphaned, content_type="application/merge-patch+json")
    create_pod(small_cluster, external_namespace, pod("later"))
    shared.reconcile_until(lambda: phase_of("later") == JobPhase.RUNNING)
    controllers.reset()
    controllers.reconcile(shared.cluster)
    assert {job.name: job.pods.count() for job in Job.objects.all()} == {"set": 2, "later": 1}
    assert phase_of("set") == JobPhase.RUNNING
    assert audit.findings() == []


def test_pending_reason_is_on_the_job_and_in_the_pod_condition(shared, small_cluster, external_namespace) -> None:
    create_pod(small_cluster, external_namespace, pod("large", cpu="100"))
    shared.reconcile_until(lambda: bool(condition(small_cluster, external_namespace, "large")))
    job = Job.objects.get(name="large")
    assert job.waiting
    assert "CPU" in condition(small_cluster, external_namespace, "large")


def test_pod_with_an_unsupported_constraint_is_refused_with_a_condition(
    shared, small_cluster, external_namespace
) -> None:
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    create_pod(small_cluster, external_namespace, pod("picky", affinity=affinity))
    shared.reconcile_until(lambda: "affinity" in condition(small_cluster, external_namespace, "picky"))
    assert not Job.objects.exists()


def test_node_affinity_of_an_external_pod_is_followed(
    shared, small_cluster, external_namespace, granted_namespace
) -> None:
    for name, value in (("here", granted_namespace), ("nowhere", "moon")):
        terms = [{"matchExpressions": [{"key": "hekla.dev/test", "operator": "In", "values": [value]}]}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        create_pod(small_cluster, external_namespace, pod(name, affinity=affinity, tolerations=[{"key": "gpu"}]))
    shared.reconcile_until(lambda: phase_of("here") == JobPhase.RUNNING)
    shared.reconcile_until(lambda: "labels do not match" in condition(small_cluster, external_namespace, "nowhere"))
    assert "nodeName" not in get_pod(small_cluster, external_namespace, "nowhere")["spec"]


def test_external_pods_with_one_port_of_the_node_wait_for_each_other(shared, small_cluster, external_namespace) -> None:
    for name in ("first", "second"):
        made = pod(name)
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 30080}]
        create_pod(small_cluster, external_namespace, made)
        if name == "first":
            shared.reconcile_until(lambda: phase_of("first") == JobPhase.RUNNING)
    shared.reconcile_until(lambda: "port in use" in condition(small_cluster, external_namespace, "second"))
    assert "nodeName" not in get_pod(small_cluster, external_namespace, "second")["spec"]


def test_pods_of_unlisted_namespaces_are_ignored(shared, small_cluster, external_namespace, unlisted_namespace) -> None:
    create_pod(small_cluster, unlisted_namespace, pod("stranger"))
    create_pod(small_cluster, external_namespace, pod("mine"))
    shared.reconcile_until(lambda: phase_of("mine") == JobPhase.RUNNING)
    assert [job.name for job in Job.objects.all()] == ["mine"]
    assert "nodeName" not in get_pod(small_cluster, unlisted_namespace, "stranger")["spec"]


def test_pod_waits_with_a_condition_if_its_tenant_does_not_exist(shared, small_cluster, external_namespace) -> None:
    shared.tenant.slug = "another"
    shared.tenant.save()
    create_pod(small_cluster, external_namespace, pod("homeless"))
    shared.reconcile_until(lambda: "no tenant" in condition(small_cluster, external_namespace, "homeless"))
    assert not Job.objects.exists()


def test_restarted_controller_finds_every_external_pod_once(shared, small_cluster, external_namespace) -> None:
    create_pod(small_cluster, external_namespace, pod("long"))
    create_pod(small_cluster, external_namespace, pod("short", seconds="0.2"))
    shared.reconcile_until(lambda: (phase_of("long"), phase_of("short")) == (JobPhase.RUNNING, JobPhase.COMPLETED))
    controllers.reset()
    backend_of(shared.cluster).close()
    delete_pod(small_cluster, external_namespace, "long")
    shared.reconcile_until(lambda: phase_of("long") == JobPhase.TERMINATED)
    assert (Job.objects.count(), Pod.objects.count(), ExternalPodRow.objects.count()) == (2, 2, 2)
    assert audit.findings() == []


def test_replacement_of_a_failed_pod_continues_its_job(shared, small_cluster, external_namespace) -> None:
    owner = new_owner(small_cluster, external_namespace, "again")
    create_pod(small_cluster, external_namespace, pod("again-x", seconds="0.2", exit_code="1", owner=owner))
    shared.reconcile_until(lambda: phase_of("again") == JobPhase.FAILED)
    create_pod(small_cluster, external_namespace, pod("again-y", seconds="0.2", owner=owner))
    shared.reconcile_until(lambda: phase_of("again") == JobPhase.COMPLETED)
    job = Job.objects.get()
    assert [(str(row), row.attempt, row.phase) for row in job.pods.order_by("attempt")] == [
        ("pod-0", 1, PodPhase.FAILED),
        ("pod-0", 2, PodPhase.SUCCEEDED),
    ]
    assert audit.findings() == []


def test_gang_waits_and_starts_as_a_whole(shared, small_cluster, external_namespace, pod_groups) -> None:
    """Three pods of two CPUs do not fit on four CPUs. With a smaller one in place of one of them they do."""
    create_pod_group(small_cluster, external_namespace, "trio", 3)
    for number, cpu in enumerate(("1", "2")):
        create_pod(small_cluster, external_namespace, member("trio", number, cpu=cpu))
    shared.reconcile_until(lambda: bool(condition(small_cluster, external_namespace, "trio-0")))
    job = Job.objects.get(name="trio")
    assert (job.phase, job.replicas, job.spec["min_available"]) == (JobPhase.PENDING, 3, 3)
    create_pod(small_cluster, external_namespace, member("trio", 2, cpu="2"))
    shared.reconcile_until(lambda: Pod.objects.count() == 3)
    shared.reconcile_until(lambda: bool(condition(small_cluster, external_namespace, "trio-2")))
    assert {one.phase for one in Pod.objects.all()} == {PodPhase.PENDING}
    delete_pod(small_cluster, external_namespace, "trio-2")
    shared.reconcile_until(lambda: Pod.objects.filter(phase=PodPhase.LOST).exists())
    create_pod(small_cluster, external_namespace, member("trio", 2))
    shared.reconcile_until(lambda: phase_of("trio") == JobPhase.RUNNING)
    assert Pod.objects.filter(phase=PodPhase.RUNNING).count() == 3
    shared.reconcile_until(lambda: pod_group_phase(small_cluster, external_namespace, "trio") == "Running")
    assert audit.findings() == []


@pytest.fixture
def patient_class(small_cluster: ControlPlane, external_namespace: str) -> Iterator[str]:
    """The name of a PriorityClass with value 70 that never preempts."""
    place, name = "/apis/scheduling.k8s.io/v1/priorityclasses", f"patient-{external_namespace}"
    small_cluster.request("POST", place, {"metadata": {"name": name}, "value": 70, "preemptionPolicy": "Never"})
    probe = {**pod("asks"), "spec": {**pod("asks")["spec"], "priorityClassName": name}}
    dry = f"/api/v1/namespaces/{external_namespace}/pods?dryRun=All"
    small_cluster.wait_until(lambda: is_accepted(small_cluster, dry, probe), 60.0)  # the API server knows the class
    yield name
    small_cluster.request("DELETE", f"{place}/{name}")


def is_accepted(plane: ControlPlane, path: str, body: Object) -> bool:
    try:
        plane.request("POST", path, body)
    except RequestRefused:
        return False
    return True


def test_pod_has_the_priority_of_its_class_in_the_cluster(
    shared, small_cluster, external_namespace, patient_class
) -> None:
    create_pod(small_cluster, external_namespace, pod("theirs", priorityClassName=patient_class))
    shared.reconcile_until(lambda: phase_of("theirs") == JobPhase.RUNNING)
    job = Job.objects.get()
    assert (job.priority, job.never_preempts) == (70, True)


def test_gang_admitted_before_its_pods_takes_their_priority(
    shared, small_cluster, external_namespace, pod_groups, patient_class
) -> None:
    shared.cluster.config["external_pods"]["admits_groups"] = True
    shared.cluster.save()
    create_pod_group(small_cluster, external_namespace, "later", 1, minResources={"cpu": "1"})
    shared.reconcile_until(lambda: pod_group_phase(small_cluster, external_namespace, "later") == "Inqueue")
    create_pod(small_cluster, external_namespace, member("later", 0, priorityClassName=patient_class))
    shared.reconcile_until(lambda: phase_of("later") == JobPhase.RUNNING)
    job = Job.objects.get()
    assert (job.priority, job.never_preempts) == (70, True)


def test_gang_waits_in_the_queue_that_it_names_if_hekla_has_it(
    shared, small_cluster, external_namespace, pod_groups
) -> None:
    queues.create(cluster=shared.cluster, name="night", actor=PLATFORM, now=clock.now())
    create_pod_group(small_cluster, external_namespace, "known", 1, queue="night")
    create_pod_group(small_cluster, external_namespace, "unknown", 1, queue="nobodys")
    for name in ("known", "unknown"):
        create_pod(small_cluster, external_namespace, member(name, 0))
    shared.reconcile_until(lambda: (phase_of("known"), phase_of("unknown")) == (JobPhase.RUNNING,) * 2)
    assert {job.name: job.queue.name for job in Job.objects.all()} == {"known": "night", "unknown": "default"}


def test_gang_without_pods_is_admitted_if_groups_are_admitted(
    shared, small_cluster, external_namespace, pod_groups
) -> None:
    shared.cluster.config["external_pods"]["admits_groups"] = True
    shared.cluster.save()
    create_pod_group(small_cluster, external_namespace, "later", 2, minResources={"cpu": "2"})
    create_pod_group(small_cluster, external_namespace, "never", 1)
    shared.reconcile_until(lambda: pod_group_phase(small_cluster, external_namespace, "later") == "Inqueue")
    controllers.reset()
    controllers.reconcile(shared.cluster)
    assert phase_of("later") == JobPhase.PENDING
    for number in range(2):
        create_pod(small_cluster, external_namespace, member("later", number, seconds="1"))
    shared.reconcile_until(lambda: phase_of("later") == JobPhase.COMPLETED)
    assert Job.objects.get(name="later").replicas == 2
    shared.reconcile_until(lambda: pod_group_phase(small_cluster, external_namespace, "never") == "Inqueue")
    small_cluster.request("DELETE", f"{_GROUPS.format(external_namespace)}/never")
    shared.reconcile_until(lambda: phase_of("never") == JobPhase.TERMINATED)
    assert audit.findings() == []


def test_pods_wait_for_their_missing_pod_group(shared, small_cluster, external_namespace, pod_groups) -> None:
    create_pod(small_cluster, external_namespace, member("late", 0))
    shared.reconcile_until(lambda: "PodGroup" in condition(small_cluster, external_namespace, "late-0"))
    assert not Job.objects.exists()
    create_pod_group(small_cluster, external_namespace, "late", 1)
    shared.reconcile_until(lambda: phase_of("late") == JobPhase.RUNNING)


def test_external_jobs_cannot_be_created_or_aborted_in_the_console(shared, small_cluster, external_namespace) -> None:
    create_pod(small_cluster, external_namespace, pod("theirs"))
    shared.reconcile_until(lambda: phase_of("theirs") == JobPhase.RUNNING)
    with pytest.raises(Refused):
        services.command(Job.objects.get(), LifecycleAction.ABORT_JOB, user=shared.alice, now=clock.now())
    spec = JobSpec.parse({"name": "one", "kind": "adopted", "tasks": [{"name": "main", "command": ["x"]}]})
    with pytest.raises(Invalid):
        services.submit(spec=spec, tenant=shared.tenant, user=shared.alice, now=clock.now())
