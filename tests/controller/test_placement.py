"""Jobs whose tasks say where their pods may run: from their spec to the nodes of their pods."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.conftest import WorldFactory, abort_and_settle, found, settle, spec, submit

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy import services as tenancy
from hekla.backends.base import PodOrder
from hekla.backends.kubernetes import names
from hekla.controller import pods
from hekla.domain.resources import Resources
from hekla.engine import model
from hekla.engine.cycle import cycle
from hekla.engine.policy import parse
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot
from hekla.simulation import what_if
from hekla.simulation.what_if import StartVerdict

__all__ = ["found"]
REQUIRED = "required_during_scheduling_ignored_during_execution"
PREFERRED = "preferred_during_scheduling_ignored_during_execution"
EVERYWHERE = [{"operator": "Exists"}]
OPEN = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
"""A policy that admits every job, so that pods of waiting jobs exist."""


def in_zones(*zones: str) -> dict[str, Any]:
    terms = [{"match_expressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}]
    return {"node_affinity": {REQUIRED: {"node_selector_terms": terms}}}


def pod_terms(part: str, app: str, key: str = "zone") -> dict[str, Any]:
    return {part: {REQUIRED: [{"label_selector": {"match_labels": {"app": app}}, "topology_key": key}]}}


def spread(app: str, when: str = "DoNotSchedule") -> list[dict[str, Any]]:
    selector = {"match_labels": {"app": app}}
    return [{"max_skew": 1, "topology_key": "zone", "when_unsatisfiable": when, "label_selector": selector}]


def zones(world: World, job: Job) -> Counter[str]:
    """The zones of the job's pods with a node."""
    by_name = {node.name: node.labels["zone"] for node in Node.objects.filter(cluster=world.cluster)}
    return Counter(by_name[pod.node] for pod in Pod.objects.filter(job=job).exclude(node=""))


def reasons(job: Job) -> set[str]:
    """Why nodes refuse the job's pods."""
    return {name for reason in Job.objects.get(pk=job.pk).waiting for name in reason["nodes"]}


def test_required_node_affinity_chooses_the_zone(found: WorldFactory) -> None:
    world = found({"zone": "a"}, {"zone": "b"}, {"zone": "c"})
    job = submit(world, spec(replicas=3, affinity=in_zones("b")))
    nowhere = submit(world, spec("moon", affinity=in_zones("moon")))
    settle(world)
    assert zones(world, job) == {"b": 3}
    assert (zones(world, nowhere), reasons(nowhere)) == ({}, {"label does not match"})


def test_preferred_node_affinity_is_followed_while_there_is_room(found: WorldFactory) -> None:
    preference = {"match_expressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    affinity = {"node_affinity": {PREFERRED: [{"weight": 100, "preference": preference}]}}
    policy = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]\n'
    world = found({"zone": "a"}, {"zone": "b"}, policy=policy)
    job = submit(world, spec(replicas=5, affinity=affinity))
    settle(world)
    assert zones(world, job) == {"a": 1, "b": 4}


def test_hard_spread_is_even_over_zones(found: WorldFactory) -> None:
    world = found({"zone": "a", "cpu": "8"}, {"zone": "b"}, {"zone": "c"})
    job = submit(world, spec(replicas=6, labels={"app": "x"}, topology_spread_constraints=spread("x")))
    settle(world)
    assert zones(world, job) == {"a": 2, "b": 2, "c": 2}


def test_anti_affinity_keeps_pods_apart(found: WorldFactory) -> None:
    world = found({"zone": "a", "cpu": "8"}, {"zone": "b"}, {"zone": "c"})
    task = {"labels": {"app": "x"}, "affinity": pod_terms("pod_anti_affinity", "x")}
    job = submit(world, spec(replicas=3, **task))
    late = submit(world, spec("late", **task))
    settle(world)
    assert zones(world, job) == {"a": 1, "b": 1, "c": 1}
    assert (zones(world, late), reasons(late)) == ({}, {"pod anti-affinity"})


def test_affinity_brings_pods_to_those_of_another_job(found: WorldFactory) -> None:
    world = found({"zone": "a"}, {"zone": "b"})
    near = spec("near", affinity=pod_terms("pod_affinity", "data"))
    lonely = submit(world, near)
    settle(world)
    assert (zones(world, lonely), reasons(lonely)) == ({}, {"pod affinity"})
    other = submit(world, spec("other", labels={"app": "data"}, affinity=in_zones("b")))
    settle(world)
    settle(world)
    assert zones(world, other) == zones(world, lonely) == {"b": 1}


def test_affinity_to_pods_without_room_around_waits(found: WorldFactory) -> None:
    """In an empty cluster the job could not start at all, but it can once the other job leaves room."""
    world = found({"zone": "a"})
    submit(world, spec("other", replicas=4, labels={"app": "data"}))
    settle(world)
    draft = spec(affinity=pod_terms("pod_affinity", "data"))
    assert what_if.predict_draft(draft, tenant=world.tenant, user=world.alice).verdict is StartVerdict.WAITS


def test_selectors_do_not_reach_pods_of_other_tenants(found: WorldFactory) -> None:
    world, now = found({"zone": "a"}), clock.now()
    bob = accounts.create_user(username="bob", password=None, actor=PLATFORM, now=now)
    other = tenancy.create(slug="other", name="Other", actor=PLATFORM, now=now)
    tenancy.add_member(other, bob, "member", actor=PLATFORM, now=now)
    apart = {"labels": {"app": "x"}, "affinity": pod_terms("pod_anti_affinity", "x")}
    ours = submit(world, spec("ours", **apart))
    theirs = services.submit(spec=spec("theirs", **apart), tenant=other, user=bob, now=now)
    near = services.submit(
        spec=spec("near", affinity=pod_terms("pod_affinity", "only-ours")), tenant=other, user=bob, now=now
    )
    submit(world, spec("data", labels={"app": "only-ours"}))
    settle(world)
    assert zones(world, ours) == zones(world, theirs) == {"a": 1}
    assert zones(world, near) == {}


def test_constraints_of_ended_jobs_no_longer_count(found: WorldFactory, settings: Any) -> None:
    """The autouse check of the engine's cache compares it with a fresh one after every cycle."""
    assert settings.CHECK_ENGINE
    world = found({"zone": "a"}, {"zone": "b"})
    apart = submit(world, spec("apart", labels={"app": "x"}, affinity=pod_terms("pod_anti_affinity", "x")))
    plain = submit(world, spec("plain", replicas=2))
    labelled = submit(world, spec("labelled", replicas=7, cpu="1", labels={"app": "x"}, min_available=1))
    settle(world)
    abort_and_settle(world, apart)
    assert zones(world, plain).total() == 2
    assert zones(world, labelled).total() == 6


def binds(world: World, change: Callable[[model.NodeSpec], model.NodeSpec]) -> dict[str, str]:
    """Job and node of each pod that the engine places, if the nodes are large and changed so."""
    snapshot, large = read_snapshot(world.cluster, now=clock.now()), Resources.parse({"cpu": "99", "pods": "99"})
    nodes = tuple(change(replace(node, allocatable=large)) for node in snapshot.state.nodes)
    state = replace(snapshot.state, nodes=nodes)
    decisions = cycle(state, parse(OPEN), clock.now().timestamp())
    return {snapshot.pods[bind.pod].job.name: bind.node for bind in decisions.binds}


def submit_waiting(world: World, *specs: Any) -> None:
    """Submits the jobs behind one that fills the node, so that their pods wait for the engine of the test."""
    submit(world, spec("filling", replicas=4))
    settle(world)
    for one in specs:
        submit(world, one)
    settle(world)


def test_tolerations_open_tainted_nodes(found: WorldFactory) -> None:
    world = found({"zone": "a"}, policy=OPEN)
    exact = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
    wrong = {"key": "gpu", "value": "h100"}
    submit_waiting(
        world,
        spec("plain"),
        spec("exact", tolerations=[exact]),
        spec("exists", tolerations=[{"key": "gpu", "operator": "Exists"}]),
        spec("wrong", tolerations=[wrong]),
    )
    taints = (model.Taint("gpu", "a100"),)
    assert set(binds(world, lambda node: replace(node, taints=taints))) == {"exact", "exists"}
    leaving = (model.Taint("gpu", "a100", "NoExecute"),)
    assert set(binds(world, lambda node: replace(node, taints=leaving))) == {"exists"}
    soft = (model.Taint("gpu", "a100", "PreferNoSchedule"),)
    assert set(binds(world, lambda node: replace(node, taints=soft))) == {"plain", "exact", "exists", "wrong"}


def test_no_toleration_reaches_a_node_that_is_not_ready(found: WorldFactory) -> None:
    """A cordon can be tolerated, as in Kubernetes."""
    world = found({"zone": "a"}, policy=OPEN)
    submit_waiting(world, spec("plain"), spec("daring", tolerations=EVERYWHERE))
    assert set(binds(world, lambda node: replace(node, unschedulable=True))) == {"daring"}
    assert binds(world, lambda node: replace(node, unschedulable=True, is_ready=False)) == {}
    Node.objects.update(is_ready=False)
    (node,) = read_snapshot(world.cluster, now=clock.now()).state.nodes
    assert (node.unschedulable, node.is_ready) == (True, False)


def test_pods_of_a_task_share_their_constraints(found: WorldFactory) -> None:
    world = found({"zone": "a"}, policy=OPEN)
    task = {"labels": {"app": "x"}, "affinity": pod_terms("pod_anti_affinity", "x"), "tolerations": EVERYWHERE}
    submit_waiting(world, *(spec(name, replicas=2, **task) for name in ("one", "two")))
    _filling, one, two = read_snapshot(world.cluster, now=clock.now()).state.jobs
    (first, second), (third, _fourth) = one.pods, two.pods
    assert first.constraints is second.constraints
    assert first.labels is second.labels
    assert (first.constraints, first.tolerations) == (third.constraints, third.tolerations)
    (term,) = first.constraints.pod_anti_affinity
    assert term.selector.namespaces == {str(world.tenant.pk)}


def test_labels_that_were_set_here_choose_nodes_and_pods_do_not_carry_them(
    found: WorldFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, orders, make = found({"zone": "a"}, {"zone": "a"}), list[PodOrder](), pods._order

    def noted(*values: Any) -> PodOrder:
        orders.append(make(*values))
        return orders[-1]

    monkeypatch.setattr(pods, "_order", noted)
    node = Node.objects.latest("name")
    clusters.label_node(node, {"fast": "yes"}, actor=PLATFORM, now=clock.now())
    submit(world, spec(node_selector={"fast": "yes", "zone": "a"}))
    settle(world)
    assert [(one.node, one.placement) for one in orders] == [(node.name, {"nodeSelector": {"zone": "a"}})]


@pytest.mark.kubernetes
@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_pod_on_kubernetes_carries_what_the_kubelet_checks(world: World, small_cluster: ControlPlane) -> None:
    namespace = world.cluster.config["namespace"]
    expression = {"key": "hekla.dev/test", "operator": "In", "values": [namespace]}
    terms = {"node_selector_terms": [{"match_expressions": [expression]}]}
    affinity = {"node_affinity": {REQUIRED: terms}, **pod_terms("pod_anti_affinity", "x", "kubernetes.io/hostname")}
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 30}
    job = submit(
        world,
        spec(
            labels={"app": "x"},
            node_selector={"hekla.dev/test": namespace},
            tolerations=[toleration],
            affinity=affinity,
            topology_spread_constraints=spread("x", "ScheduleAnyway"),
        ),
    )
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase="running").exists())
    selector = f"{names.JOB}={job.uid.hex}"
    (made,) = small_cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")["items"]
    written = {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    assert written in made["spec"]["tolerations"]
    assert made["spec"]["nodeSelector"] == {"hekla.dev/test": namespace}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    assert made["spec"]["affinity"] == {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert "topologySpreadConstraints" not in made["spec"]
    assert "app" not in made["metadata"]["labels"]
