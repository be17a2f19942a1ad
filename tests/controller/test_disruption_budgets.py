"""Disruption budgets of a cluster as an input of the engine: it chooses victims that no budget protects."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.controller.conftest import World, describe
from tests.controller.external_pods import create_budget
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import spec

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, ClusterObject, Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.config import parse_config
from hekla.backends.simulated.config import SimulatedConfig
from hekla.controller import disruption_budgets as budgets
from hekla.domain.errors import Invalid
from hekla.domain.phases import PodPhase
from hekla.engine.policy import parse
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot
from hekla.scheduling.supplies import Input, supplied

POLICY = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: pdb}]
"""
BUDGET = {"name": "web", "selector": {"match_labels": {"app": "web"}}}


def submit(world: World, name: str, replicas: int = 1, **more: Any) -> Job:
    """One of its pods is enough to run."""
    wanted = spec(name, replicas, min_available=1, **more)
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def count_running(*jobs: Job) -> int:
    return Pod.objects.filter(job__in=jobs, phase=PodPhase.RUNNING, stopping=False).count()


def use_policy(world: World) -> None:
    clusters.set_policy(world.cluster, POLICY, note="", by=world.alice, actor=PLATFORM, now=clock.now())


def reasons(job: Job) -> str:
    return " ".join(map(labels.reason, Job.objects.get(pk=job.pk).waiting))


@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_budget_of_the_cluster_decides_which_pod_is_evicted(
    world: World, one_machine: dict[str, Any], small_cluster: ControlPlane
) -> None:
    use_policy(world)
    guarded, plain = submit(world, "guarded", 2, priority=-5), submit(world, "plain", 2, priority=-1)
    world.reconcile_until(lambda: count_running(guarded, plain) == 4)
    path = create_budget(small_cluster, one_machine["namespace"], {"hekla.dev/job": guarded.uid.hex}, 2)
    world.reconcile_until(lambda: ClusterObject.objects.filter(kind="PodDisruptionBudget").exists())
    first = submit(world, "first", priority=100)
    world.reconcile_until(lambda: count_running(first) == 1)
    assert (count_running(guarded), count_running(plain)) == (2, 1), describe()
    second = submit(world, "second", priority=100)
    world.reconcile_until(lambda: "budget" in reasons(second))
    assert not LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists(), "the engine knew the budget"
    small_cluster.request("DELETE", path)
    world.reconcile_until(lambda: count_running(second) == 1)
    assert (count_running(guarded), count_running(plain)) == (1, 1)
    assert "PodDisruptionBudgets" in supplied(world.cluster, parse(POLICY))[Input.BUDGETS]


@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_drain_waits_for_the_budget_of_the_cluster(
    world: World, one_machine: dict[str, Any], small_cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "SPARED_SECONDS", 0.5)
    guarded = submit(world, "guarded", 2)
    world.reconcile_until(lambda: count_running(guarded) == 2)
    path = create_budget(small_cluster, one_machine["namespace"], {"hekla.dev/job": guarded.uid.hex}, 2)
    world.alice.platform_role = "operator"
    world.alice.save()
    node = Node.objects.get(name=Pod.objects.filter(job=guarded).latest("pk").node)
    services.drain(node, reason="a new fan", user=world.alice, now=clock.now())
    world.reconcile_until(lambda: LoggedEvent.objects.filter(kind="PodEvictionBlocked").exists())
    world.reconcile_until(lambda: count_running(guarded) == 2)
    small_cluster.request("DELETE", path)
    world.reconcile_until(lambda: not Pod.objects.filter(node=node.name, phase=PodPhase.RUNNING).exists())
    assert Pod.objects.filter(node=node.name, evicted=True, phase=PodPhase.FAILED).exists(), describe()


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
@pytest.mark.parametrize(("amount", "count"), [({"max_unavailable": 1}, 2), ({"min_available": "100%"}, 3)])
def test_budget_of_a_simulated_cluster_keeps_pods_running(world: World, amount: dict[str, Any], count: int) -> None:
    Cluster.objects.update(config={**world.cluster.config, "disruption_budgets": [BUDGET | amount]})
    world.cluster.refresh_from_db()
    use_policy(world)
    web = submit(world, "web", 3, priority=-5, labels={"app": "web"})
    world.reconcile_until(lambda: count_running(web) == 3)
    urgent = [submit(world, f"urgent-{at}", priority=100) for at in range(3)]
    world.reconcile_until(lambda: any("budget" in reasons(job) for job in urgent))
    assert count_running(web) == count, describe()


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
@pytest.mark.parametrize(
    ("budget", "count"),
    [
        (lambda job: {"match_labels": {"app": "web"}}, 2),
        (lambda job: {"match_labels": {"app": "batch"}}, 0),
        (lambda job: {"match_labels": {"hekla.dev/job": job.uid.hex, "hekla.dev/index": "1"}}, 1),
        (lambda job: {}, 2),
    ],
)
def test_budget_covers_pods_by_labels_of_tasks_and_of_hekla(
    world: World, budget: Callable[[Job], dict[str, Any]], count: int
) -> None:
    web = submit(world, "web", 2, labels={"app": "web"})
    world.reconcile_until(lambda: count_running(web) == 2)
    ((body),) = parse_config(
        SimulatedConfig, {"disruption_budgets": [{"name": "b", "min_available": 1, "selector": budget(web)}]}
    ).disruption_budgets
    facts = body.facts()
    ClusterObject.objects.create(
        cluster=world.cluster, kind=facts.kind, name=facts.name, digest=facts.digest, body=facts.body
    )
    (found,) = read_snapshot(world.cluster, now=clock.now()).state.budgets
    assert (len(found.pods or ()), found.allowed) == (count, max(0, count - 1))
    Pod.objects.filter(job=web, index=0).update(stopping=True)
    (found,) = read_snapshot(world.cluster, now=clock.now()).state.budgets
    assert found.allowed == 0


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_budget_of_another_tenant_covers_no_pods(world: World) -> None:
    web = submit(world, "web", 2)
    world.reconcile_until(lambda: count_running(web) == 2)
    body = {
        "metadata": {"namespace": "other", "name": "b"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 5},
    }
    ClusterObject.objects.create(cluster=world.cluster, kind="PodDisruptionBudget", name="b", digest="b", body=body)
    (found,) = read_snapshot(world.cluster, now=clock.now()).state.budgets
    assert (found.pods, found.allowed) == (frozenset(), 5)


@pytest.mark.parametrize("amounts", [{}, {"min_available": 1, "max_unavailable": 1}, {"min_available": "101%"}])
def test_invalid_budget_of_a_configuration_is_refused(amounts: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        parse_config(SimulatedConfig, {"disruption_budgets": [{"name": "b", **amounts}]})


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_pods_without_own_labels_are_evicted_as_those_of_volcano_jobs(world: World) -> None:
    """Volcano spares pods without any labels, but its jobs' pods have some, as Hekla's."""
    text = f"{POLICY}compatibility: volcano\n"
    clusters.set_policy(world.cluster, text, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    plain = submit(world, "plain", 4)
    world.reconcile_until(lambda: count_running(plain) == 4)
    urgent = submit(world, "urgent", 2, priority=100)
    world.reconcile_until(lambda: count_running(urgent) == 1)
