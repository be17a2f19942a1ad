"""What one may rely on in a cycle: gangs whole or not at all, shares by weight, order by priority, conditions kept."""

import pytest
from tests.engine.worlds import bound, decide, job, node, running

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.decisions import Cause
from hekla.engine.model import PodStatus, QueueSpec, Taint, Toleration
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse

GIB = Resources.parse({"cpu": "1", "memory": "1Gi"})


def test_a_gang_that_does_not_fit_whole_gets_nothing() -> None:
    assert bound(decide([node("a", "3")], [job("gang", 4)])) == {}


def test_two_gangs_of_four_on_four_places_never_mix() -> None:
    nodes = [node("a", "2"), node("b", "2")]
    first, second = job("first", 4, created_at=1.0), job("second", 4, created_at=2.0)
    assert bound(decide(nodes, [first, second])) == {"first": 4}
    assert bound(decide(nodes, [second])) == {"second": 4}


def test_a_gang_waits_whole_beside_one_that_runs() -> None:
    decisions = decide([node("a", "4")], [running("old", 2, "a"), job("new", 4)])
    assert bound(decisions) == {}
    assert decisions.reasons["new"]


def test_beyond_the_minimum_pods_come_as_there_is_room() -> None:
    assert bound(decide([node("a", "5")], [job("elastic", 8, minimum=3)])) == {"elastic": 5}


def test_what_is_over_the_minimum_is_shared_between_jobs() -> None:
    jobs = [job("one", 8, minimum=2), job("two", 8, minimum=2)]
    assert bound(decide([node("a", "8")], jobs)) == {"one": 4, "two": 4}


def test_queues_share_by_weight() -> None:
    queues = [QueueSpec("light", weight=1), QueueSpec("heavy", weight=3)]
    jobs = [job(f"{queue.name}-{n}", queue=queue.name) for queue in queues for n in range(8)]
    counts = bound(decide([node("a", "8")], jobs, queues))
    assert sum(n for name, n in counts.items() if name.startswith("heavy")) == 6
    assert sum(n for name, n in counts.items() if name.startswith("light")) == 2


def test_an_idle_queue_lends() -> None:
    queues = [QueueSpec("idle", weight=9), QueueSpec("busy")]
    jobs = [job(f"busy-{n}", queue="busy") for n in range(8)]
    assert len(bound(decide([node("a", "8")], jobs, queues))) == 8


def test_a_capability_bounds_a_queue() -> None:
    queues = [QueueSpec("q", capability=Resources.parse({"cpu": "2"}))]
    assert len(bound(decide([node("a", "8")], [job(str(n)) for n in range(5)], queues))) == 2


def test_higher_priority_goes_first() -> None:
    jobs = [job("low", 4, priority=1, created_at=1.0), job("high", 4, priority=9, created_at=2.0)]
    assert bound(decide([node("a", "4")], jobs)) == {"high": 4}


def test_the_older_job_goes_first_among_equals() -> None:
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
def test_conditions_of_nodes_are_kept(nodes: list, task: dict) -> None:
    decisions = decide(nodes, [job("picky", cpu="2", task=task)])
    assert [bind.node for bind in decisions.binds] == ["b"]


def test_binpack_fills_the_fuller_node_and_least_requested_the_emptier() -> None:
    nodes, old = [node("a", "8"), node("b", "8")], running("old", 3, "b")
    tiers = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: %s}]}]"
    placed = {
        name: decide(nodes, [old, job("new")], policy=parse(tiers % name)).binds[0].node
        for name in ("binpack", "nodeorder")
    }
    assert placed == {"binpack": "b", "nodeorder": "a"}


def test_pods_that_ask_for_nothing_are_filled_in() -> None:
    jobs = [running("full", 4, "a"), job("tiny", cpu="")]
    assert bound(decide([node("a", "4")], jobs)) == {"tiny": 1}


def test_a_job_is_let_in_only_when_its_least_fits() -> None:
    pending = {"phase": GangPhase.PENDING}
    decisions = decide([node("a", "4")], [job("fits", 4, **pending), job("giant", 400, **pending)])
    assert decisions.phases["fits"] is GangPhase.INQUEUE
    assert decisions.phases["giant"] is GangPhase.PENDING
    reason = decisions.reasons["giant"][0]
    assert reason.need.amount("cpu") == 400_000
    assert reason.ever is False


def test_a_closed_queue_lets_nobody_in() -> None:
    decisions = decide([node("a")], [job("late", phase=GangPhase.PENDING)], [QueueSpec("q", is_open=False)])
    assert decisions.phases["late"] is GangPhase.PENDING
    assert decisions.reasons["late"][0].code == "queue_closed"


@pytest.mark.parametrize("actions", ["enqueue, allocate, backfill", "allocate"])
def test_a_queue_that_is_drained_lets_nobody_in_and_serves_who_is_in(actions: str) -> None:
    text = DEFAULT_POLICY_TEXT.replace("enqueue, allocate, backfill", actions)
    jobs = [job("late", phase=GangPhase.PENDING), job("later", phase=GangPhase.PENDING), job("inside")]
    decisions = decide([node("a")], jobs, [QueueSpec("q", is_draining=True)], parse(text))
    assert bound(decisions) == {"inside": 1}
    assert decisions.phases["late"] is GangPhase.PENDING
    assert [decisions.reasons[name][0].code for name in ("late", "later")] == ["queue_draining"] * 2


def test_what_ends_is_promised_but_not_given_yet() -> None:
    leaving = job("old", 4, phase=GangPhase.RUNNING, task={"status": PodStatus.RELEASING, "node": "a"})
    decisions = decide([node("a", "4")], [leaving, job("new", 4)])
    assert bound(decisions) == {}
    assert set(decisions.pipelined.values()) == {"a"}


def test_a_constraint_that_no_node_meets_is_named() -> None:
    decisions = decide([node("a"), node("b")], [job("lost", task={"node_selector": {"moon": "yes"}})])
    reason = decisions.reasons["lost"][0]
    assert (reason.cause, reason.nodes, reason.ever) == (Cause.CONSTRAINT, {"label does not match": 2}, False)


def test_a_pod_larger_than_any_node_can_never_start() -> None:
    reason = decide([node("a", "4"), node("b", "4")], [job("wide", cpu="6")]).reasons["wide"][0]
    assert reason.ever is False
    assert reason.nodes == {"insufficient cpu": 2}
