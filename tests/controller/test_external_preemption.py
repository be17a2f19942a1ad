"""External pods and our own are evicted for others, as far as the budgets of the cluster allow."""

import pytest
from tests.controller.conftest import World
from tests.controller.external_pods import (
    create_budget,
    create_pod,
    external_namespace,
    long_patience,
    new_owner,
    phase_of,
    pod,
    shared,
)
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller import audit, disruption_budgets
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["external_namespace", "long_patience", "shared"]
pytestmark = pytest.mark.kubernetes


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


def submit_urgent(world: World) -> Job:
    """Submits a job of ours with high priority that needs half of the node."""
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "2"}}
    spec = JobSpec.parse({"name": "urgent", "tasks": [task], "priority": 1000})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def fill_node(world: World, plane: ControlPlane, namespace: str, annotations: dict[str, str] | None = None) -> None:
    """Fills the node with two pods of one owner, of which one is enough. `annotations`: of the second."""
    clusters.set_policy(world.cluster, PREEMPTING, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    owner = new_owner(plane, namespace, "pair")
    for number in range(2):
        one = pod(f"pair-{number}", cpu="2", owner=owner, labels={"app": "pair"})
        one["metadata"] |= {"annotations": annotations or {}} if number else {}
        create_pod(plane, namespace, one)
    world.reconcile_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)


def test_preempted_external_pod_is_evicted_from_the_cluster(shared, small_cluster, external_namespace) -> None:
    fill_node(shared, small_cluster, external_namespace)
    submit_urgent(shared)
    shared.reconcile_until(lambda: phase_of("urgent") == JobPhase.RUNNING)
    left = small_cluster.request("GET", f"/api/v1/namespaces/{external_namespace}/pods")["items"]
    assert len(left) == 1
    assert sorted(Pod.objects.filter(job__name="pair").values_list("phase", "reason")) == [
        (PodPhase.FAILED, "Stopped"),
        (PodPhase.RUNNING, ""),
    ]
    assert phase_of("pair") == JobPhase.RUNNING
    assert audit.findings() == []


def test_external_pod_that_is_not_preemptable_stays(shared, small_cluster, external_namespace) -> None:
    fill_node(shared, small_cluster, external_namespace, {"volcano.sh/preemptable": "false"})
    submit_urgent(shared)
    shared.reconcile_until(lambda: phase_of("urgent") == JobPhase.RUNNING)
    left = small_cluster.request("GET", f"/api/v1/namespaces/{external_namespace}/pods")["items"]
    assert [one["metadata"]["name"] for one in left] == ["pair-1"]


def test_budget_protects_an_external_pod_until_it_is_deleted(
    shared, small_cluster, external_namespace, monkeypatch
) -> None:
    monkeypatch.setattr(disruption_budgets, "SPARED_SECONDS", 2.0)
    fill_node(shared, small_cluster, external_namespace)
    path = create_budget(small_cluster, external_namespace, {"app": "pair"}, 2)
    submit_urgent(shared)
    shared.reconcile_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists(), "a blocked eviction has no event PodEvicted"
    assert "budget" in LoggedEvent.objects.filter(kind="PodEvictionBlocked").earliest("id").payload["message"]
    assert len(small_cluster.request("GET", f"/api/v1/namespaces/{external_namespace}/pods")["items"]) == 2
    assert not Pod.objects.filter(job__name="pair", phase=PodPhase.FAILED).exists()
    small_cluster.request("DELETE", path)
    shared.reconcile_until(lambda: phase_of("urgent") == JobPhase.RUNNING)
    assert audit.findings() == []


def test_budget_protects_our_pods_from_preemption_but_not_from_abort(
    shared, small_cluster, granted_namespace, monkeypatch
) -> None:
    monkeypatch.setattr(disruption_budgets, "SPARED_SECONDS", 2.0)
    clusters.set_policy(shared.cluster, PREEMPTING, note="", by=shared.alice, actor=PLATFORM, now=clock.now())
    task = {"name": "main", "command": ["x"], "resources": {"cpu": "2"}, "replicas": 2, "min_available": 1}
    spec = JobSpec.parse({"name": "ours", "tasks": [task]})
    job = services.submit(spec=spec, tenant=shared.tenant, user=shared.alice, now=clock.now())
    shared.reconcile_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).count() == 2)
    create_budget(small_cluster, granted_namespace, {"hekla.dev/job": job.uid.hex}, 2)
    submit_urgent(shared)
    shared.reconcile_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists(), "a blocked eviction has no event PodEvicted"
    assert Pod.objects.filter(job=job, phase=PodPhase.RUNNING).count() == 2
    services.command(job, LifecycleAction.ABORT_JOB, user=shared.alice, now=clock.now())
    shared.reconcile_until(lambda: (phase_of("ours"), phase_of("urgent")) == (JobPhase.ABORTED, JobPhase.RUNNING))
    assert audit.findings() == []


def submit_elastic(world: World, name: str, replicas: int, cpu: str, priority: int) -> Job:
    """Submits a job of ours with a minimum of one pod."""
    task = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "replicas": replicas, "min_available": 1}
    spec = JobSpec.parse({"name": name, "tasks": [task], "priority": priority})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_no_more_of_our_pods_are_evicted_than_a_budget_allows(shared, small_cluster, granted_namespace) -> None:
    """Each of them alone could be evicted."""
    clusters.set_policy(shared.cluster, PREEMPTING, note="", by=shared.alice, actor=PLATFORM, now=clock.now())
    job = submit_elastic(shared, "crowd", 4, "1", 0)
    running = Pod.objects.filter(job=job, phase=PodPhase.RUNNING)
    shared.reconcile_until(lambda: running.count() == 4)
    path = create_budget(small_cluster, granted_namespace, {"hekla.dev/job": job.uid.hex}, 3)
    small_cluster.wait_until(lambda: small_cluster.request("GET", path)["status"].get("disruptionsAllowed") == 1, 60.0)
    submit_urgent(shared)
    shared.reconcile_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists(), "two evictions would be needed"
    assert running.count() == 4
    submit_elastic(shared, "small", 1, "1", 2000)
    submit_elastic(shared, "next", 1, "1", 1999)
    shared.reconcile_until(lambda: phase_of("small") == JobPhase.RUNNING)
    for _ in range(3):
        controllers.reconcile(shared.cluster)
    assert (running.count(), phase_of("next"), phase_of("urgent")) == (3, JobPhase.PENDING, JobPhase.PENDING)
    assert LoggedEvent.objects.filter(kind="PodEvicted").count() == 1
    assert audit.findings() == []
