"""One cycle: gangs start whole or not at all, queues share by weight, jobs go by priority, constraints hold."""

import pytest
from tests.engine.builders import bound, decide, job, node, running

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine.decisions import Cause
from hekla.engine.model import PodStatus, QueueSpec, Toleration
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse

GIB = Resources.parse({"cpu": "1", "memory": "1Gi"})


def test_gang_that_does_not_fit_as_a_whole_gets_nothing() -> None:
    assert bound(decide([node("a", "3")], [job("gang", 4)])) == {}


def test_two_gangs_never_start_partially_side_by_side() -> None:
    nodes = [node("a", "2"), node("b", "2")]
    first, second = job("first", 4, created_at=1.0), job("second", 4, created_at=2.0)
    assert bound(decide(nodes, [first, second])) == {"first": 4}
    assert bound(decide(nodes, [second])) == {"second": 4}


def test_gang_waits_as_a_whole_while_another_runs() -> None:
    decisions = decide([node("a", "4")], [running("old", 2, "a"), job("new", 4)])
    assert bound(decisions) == {}
    assert decisions.reasons["new"]


def test_pods_beyond_the_minimum_start_as_room_allows() -> None:
    assert bound(decide([node("a", "5")], [job("elastic", 8, minimum=3)])) == {"elastic": 5}


def test_room_beyond_the_minimums_is_shared_between_jobs() -> None:
    jobs = [job("one", 8, minimum=2), job("two", 8, minimum=2)]
    assert bound(decide([node("a", "8")], jobs)) == {"one": 4, "two": 4}


def test_queues_share_by_weight() -> None:
    queues = [QueueSpec("light", weight=1), QueueSpec("heavy", weight=3)]
    jobs = [job(f"{queue.name}-{n}", queue=queue.name) for queue in queues for n in range(8)]
    counts = bound(decide([node("a", "8")], jobs, queues))
    assert sum(n for name, n in counts.items() if name.startswith("heavy")) == 6
    assert sum(n for name, n in counts.items() if name.startswith("light")) == 2


def test_idle_queue_lends_its_share() -> None:
    queues = [QueueSpec("idle", weight=9), QueueSpec("busy")]
    jobs = [job(f"busy-{n}", queue="busy") for n in range(8)]
    assert len(bound(decide([node("a", "8")], jobs, queues))) == 8


def test_capability_limits_a_queue() -> None:
    queues = [QueueSpec("q", capability=Resources.parse({"cpu": "2"}))]
    assert len(bound(decide([node("a", "8")], [job(str(n)) for n in range(5)], queues))) == 2


def test_higher_priority_is_first() -> None:
    jobs = [job("low", 4, priority=1, created_at=1.0), job("high", 4, priority=9, created_at=2.0)]
    assert bound(decide([node("a", "4")], jobs)) == {"high": 4}


def test_older_of_equal_jobs_is_first() -> None:
    jobs = [job("a-young", 4, created_at=2.0), job("z-old", 4, created_at=1.0)]
    assert bound(decide([node("a", "4")], jobs)) == {"z-old": 4}


@pytest.mark.parametrize(
    ("nodes", "task"),
    [
        ([node("a", unschedulable=True), node("b")], {}),
        ([node("a", labels={"gpu": "old"}), node("b", labels={"gpu": "new"})], {"node_selector": {"gpu": "new"}}),
        ([node("a", taints=(Taint("own"),)), node("b")], {}),
        (
            [node("a", taints=(Taint("own"),)), node("b", taints=(Taint("ours"),))],
            {"tolerations": (Toleration(key="ours", operator="Exists"),)},
        ),
        ([node("a", "1"), node("b", "2")], {}),
    ],
)
def test_node_constraints_are_respected(nodes: list, task: dict) -> None:
    decisions = decide(nodes, [job("picky", cpu="2", task=task)])
    assert [bind.node for bind in decisions.binds] == ["b"]


def test_binpack_prefers_the_fuller_node_and_nodeorder_the_emptier() -> None:
    nodes, old = [node("a", "8"), node("b", "8")], running("old", 3, "b")
    tiers = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: %s}]}]"
    placed = {
        name: decide(nodes, [old, job("new")], policy=parse(tiers % name)).binds[0].node
        for name in ("binpack", "nodeorder")
    }
    assert placed == {"binpack": "b", "nodeorder": "a"}


def test_pods_without_requests_are_backfilled() -> None:
    jobs = [running("full", 4, "a"), job("tiny", cpu="")]
    assert bound(decide([node("a", "4")], jobs)) == {"tiny": 1}


def test_job_is_admitted_only_if_its_minimum_fits() -> None:
    pending = {"phase": GangPhase.PENDING}
    decisions = decide([node("a", "4")], [job("fits", 4, **pending), job("giant", 400, **pending)])
    assert decisions.phases["fits"] is GangPhase.INQUEUE
    assert decisions.phases["giant"] is GangPhase.PENDING
    reason = decisions.reasons["giant"][0]
    assert reason.need.amount("cpu") == 400_000
    assert reason.ever is False


def test_closed_queue_admits_no_job_with_volcanos_rules() -> None:
    policy = parse(f"{DEFAULT_POLICY_TEXT}compatibility: volcano\n")
    decisions = decide([node("a")], [job("late", phase=GangPhase.PENDING)], [QueueSpec("q", is_open=False)], policy)
    assert decisions.phases["late"] is GangPhase.PENDING
    assert decisions.reasons["late"][0].code == "queue_closed"


@pytest.mark.parametrize("actions", ["enqueue, allocate, backfill", "allocate"])
def test_draining_queue_admits_no_job_and_runs_admitted_ones(actions: str) -> None:
    text = DEFAULT_POLICY_TEXT.replace("enqueue, allocate, backfill", actions)
    jobs = [job("late", phase=GangPhase.PENDING), job("later", phase=GangPhase.PENDING), job("inside")]
    decisions = decide([node("a")], jobs, [QueueSpec("q", is_draining=True)], parse(text))
    assert bound(decisions) == {"inside": 1}
    assert decisions.phases["late"] is GangPhase.PENDING
    assert [decisions.reasons[name][0].code for name in ("late", "later")] == ["queue_draining"] * 2


def test_releasing_resources_are_pipelined() -> None:
    leaving = job("old", 4, phase=GangPhase.RUNNING, task={"status": PodStatus.RELEASING, "node": "a"})
    decisions = decide([node("a", "4")], [leaving, job("new", 4)])
    assert bound(decisions) == {}
    assert set(decisions.pipelined.values()) == {"a"}


def test_reason_names_a_constraint_that_no_node_meets() -> None:
    decisions = decide([node("a"), node("b")], [job("lost", task={"node_selector": {"moon": "yes"}})])
    reason = decisions.reasons["lost"][0]
    assert (reason.cause, reason.nodes, reason.ever) == (Cause.CONSTRAINT, {"label does not match": 2}, False)


def test_pod_larger_than_any_node_can_never_start() -> None:
    reason = decide([node("a", "4"), node("b", "4")], [job("wide", cpu="6")]).reasons["wide"][0]
    assert reason.ever is False
    assert reason.nodes == {"insufficient cpu": 2}
