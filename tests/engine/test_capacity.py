"""The `capacity` plugin: deserved, borrowed and reclaimed shares of queues."""

import pytest
from tests.engine.builders import bound, decide, job, node, running

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import queue_tree
from hekla.engine.decisions import Cause, Decisions, PendingReason
from hekla.engine.model import QueueSpec
from hekla.engine.policy import SchedulerPolicy, parse

_TEXT = """\
actions: "{actions}"
compatibility: {compatibility}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
    enableHierarchy: {tree}
    arguments: {{ancestorReclaimLevel: {level}, capacity.DynamicResourceAllocationEnable: true}}
  - name: nodeorder
"""


def policy(
    actions: str = "enqueue, allocate", tree: bool = False, level: int = 0, compatibility: str = "hekla"
) -> SchedulerPolicy:
    return parse(_TEXT.format(actions=actions, tree=str(tree).lower(), level=level, compatibility=compatibility))


FLAT, TREE, VOLCANOS_TREE = policy(), policy(tree=True), policy(tree=True, compatibility="volcano")
ROOT = QueueSpec("root", reclaimable=False)


def cpu(amount: int) -> Resources:
    return Resources.parse({"cpu": str(amount)})


def reason(decisions: Decisions, name: str) -> PendingReason:
    return decisions.reasons[name][0]


def test_queue_borrows_beyond_its_deserved_share() -> None:
    queues = [QueueSpec("q", deserved=cpu(2)), QueueSpec("idle", deserved=cpu(6))]
    assert len(bound(decide([node("a", "8")], [job(str(n)) for n in range(8)], queues, FLAT))) == 8


def test_guarantee_of_another_queue_is_not_lent() -> None:
    queues = [QueueSpec("q"), QueueSpec("idle", guarantee=cpu(3))]
    assert len(bound(decide([node("a", "8")], [job(str(n)) for n in range(8)], queues, FLAT))) == 5


def test_queue_with_the_smaller_share_of_deserved_is_first() -> None:
    queues = [QueueSpec("small", deserved=cpu(2)), QueueSpec("large", deserved=cpu(6)), QueueSpec("nothing")]
    jobs = [job(f"{queue.name}-{n}", queue=queue.name) for queue in queues for n in range(8)]
    counts = bound(decide([node("a", "8")], jobs, queues, FLAT))
    by_queue = [sum(n for name, n in counts.items() if name.startswith(queue.name)) for queue in queues]
    assert by_queue == [2, 6, 0]


def test_queue_with_higher_priority_is_first() -> None:
    queues = [QueueSpec("low", deserved=cpu(8)), QueueSpec("high", priority=1)]
    jobs = [job("low", 4, queue="low"), job("high", 4, queue="high")]
    assert bound(decide([node("a", "4")], jobs, queues, FLAT)) == {"high": 4}


@pytest.mark.parametrize(
    ("queues", "code", "cause", "ever"),
    [
        ([QueueSpec("q", capability=cpu(4))], "queue_is_full", Cause.QUOTA, True),
        ([QueueSpec("q", capability=cpu(3))], "queue_is_full", Cause.QUOTA, False),
        ([QueueSpec("q")], "cluster_is_full", Cause.CAPACITY, True),
        ([QueueSpec("q", is_open=False)], "queue_closed", Cause.QUOTA, True),
    ],
    ids=["now", "ever", "cluster", "closed"],
)
@pytest.mark.parametrize("phase", [GangPhase.PENDING, GangPhase.INQUEUE])
def test_reason_has_needed_and_remaining_amounts(
    phase: GangPhase, queues: list[QueueSpec], code: str, cause: Cause, ever: bool
) -> None:
    jobs = [running("old", 2, "a"), job("new", 4, phase=phase)]
    chosen = FLAT if queues[0].is_open else policy(compatibility="volcano")
    found = reason(decide([node("a", "5")], jobs, queues, chosen), "new")
    assert (found.code, found.cause, found.plugin, found.ever) == (code, cause, "capacity", ever)
    assert found.need.amount("cpu") == 4000
    room = queues[0].capability.amount("cpu") if queues[0].capability else 5000
    assert found.have.amount("cpu") == room - 2000


def test_reason_of_a_running_elastic_job_is_for_one_more_pod() -> None:
    queues = [QueueSpec("q", capability=cpu(3))]
    decisions = decide([node("a", "8")], [job("elastic", 6, minimum=2)], queues, FLAT)
    assert bound(decisions) == {"elastic": 3}
    found = reason(decisions, "elastic")
    assert (found.need.amount("cpu"), found.have.amount("cpu"), found.pods, found.ever) == (1000, 0, 3, True)


def test_reclaim_stops_at_the_deserved_share() -> None:
    queues = [QueueSpec("mine", deserved=cpu(3)), QueueSpec("theirs", deserved=cpu(1))]
    jobs = [running(str(n), 1, "a", queue="theirs") for n in range(4)]
    jobs += [job(f"new-{n}", queue="mine") for n in range(4)]
    decisions = decide([node("a", "4")], jobs, queues, policy("reclaim"))
    assert len(decisions.evictions) == 0  # a gang at its minimum stays whole
    jobs = [running("borrower", 4, "a", queue="theirs", minimum=1), *jobs[4:]]
    decisions = decide([node("a", "4")], jobs, queues, policy("reclaim"))
    assert (len(decisions.evictions), len(decisions.pipelined)) == (3, 3)


def test_guarantee_is_never_reclaimed() -> None:
    queues = [QueueSpec("mine", deserved=cpu(4)), QueueSpec("theirs", guarantee=cpu(2))]
    jobs = [running("borrower", 4, "a", queue="theirs", minimum=1)]
    jobs += [job(f"new-{n}", queue="mine") for n in range(4)]
    assert len(decide([node("a", "4")], jobs, queues, policy("reclaim")).evictions) == 2


def test_claimed_devices_stay_within_the_queue_capability() -> None:
    queues = [QueueSpec("q", capability=Resources.parse({"deviceclass/gpu": 2}))]
    claims = {"claimed_devices": Resources.parse({"deviceclass/gpu": 1, "deviceclass/nic": 9})}
    decisions = decide([node("a", "8")], [job(str(n), task=claims) for n in range(3)], queues, FLAT)
    assert len(bound(decisions)) == 2
    found = reason(decisions, "2")
    assert (found.code, found.need.amount("deviceclass/gpu"), found.ever) == ("queue_is_full", 1000, True)


# A tree of queues.


def tree(**bounds: Resources) -> list[QueueSpec]:
    """`a` with `a0` and `a1`, `b` with `b0`, all below the root."""
    names = {"a": "root", "b": "", "a0": "a", "a1": "a", "b0": "b"}
    deserved = {name: bounds.get(f"{name}_deserved") for name in names}
    return [
        ROOT,
        *(
            QueueSpec(name, parent=up, deserved=deserved[name], capability=bounds.get(name))
            for name, up in names.items()
        ),
    ]


@pytest.mark.parametrize("phase", [GangPhase.PENDING, GangPhase.INQUEUE])
def test_capability_of_a_parent_limits_its_children(phase: GangPhase) -> None:
    jobs = [running("one", 2, "x", queue="a0"), job("two", 2, queue="a1", phase=phase), job("far", 2, queue="b0")]
    decisions = decide([node("x", "8")], jobs, tree(a=cpu(3)), TREE)
    assert bound(decisions) == {"far": 2}
    found = reason(decisions, "two")
    assert (found.code, found.need.amount("cpu"), found.have.amount("cpu")) == ("parent_queue_is_full", 2000, 1000)
    assert found.ever


def test_branches_are_ordered_by_their_present_share() -> None:
    queues = tree(a_deserved=cpu(2), b_deserved=cpu(6), a0_deserved=cpu(9), b0_deserved=cpu(1))
    jobs = [job(f"{name}-{n}", queue=name) for name in ("a0", "b0") for n in range(8)]
    counts = bound(decide([node("x", "8")], jobs, queues, TREE))
    assert sum(name.startswith("b0") for name in counts) == 6


def test_volcano_orders_branches_by_their_share_at_the_start() -> None:
    queues = tree(a_deserved=cpu(2), b_deserved=cpu(6), a0_deserved=cpu(9), b0_deserved=cpu(1))
    jobs = [job(f"{name}-{n}", queue=name) for name in ("a0", "b0") for n in range(8)]
    counts = bound(decide([node("x", "8")], jobs, queues, VOLCANOS_TREE))
    assert sum(name.startswith("b0") for name in counts) == 0


BROKEN = {
    "queue_tree_cycle": [QueueSpec("c", parent="d"), QueueSpec("d", parent="c")],
    "queue_parent_missing": [QueueSpec("c", parent="nowhere")],
    "queue_has_children": [QueueSpec("c"), QueueSpec("e", parent="c")],
}


@pytest.mark.parametrize("code", BROKEN)
@pytest.mark.parametrize("phase", [GangPhase.PENDING, GangPhase.INQUEUE])
def test_only_jobs_of_a_misplaced_queue_wait(code: str, phase: GangPhase) -> None:
    jobs = [job("well", queue="a0"), job("ill", queue="c", phase=phase)]
    decisions = decide([node("x")], jobs, [*tree(), *BROKEN[code]], TREE)
    assert bound(decisions) == {"well": 1}
    assert (reason(decisions, "ill").code, reason(decisions, "ill").ever) == (code, False)


@pytest.mark.parametrize("code", BROKEN)
def test_volcano_stops_every_queue_with_a_reason(code: str) -> None:
    jobs = [job("well", queue="a0"), job("ill", queue="c")]
    decisions = decide([node("x")], jobs, [*tree(), *BROKEN[code]], VOLCANOS_TREE)
    assert bound(decisions) == {}
    assert (reason(decisions, "ill").code, reason(decisions, "well").code) == (code, "queue_tree_not_ready")


def test_tree_needs_no_queue_named_root() -> None:
    queues = [queue for queue in tree() if queue is not ROOT]
    assert bound(decide([node("x")], [job("j", queue="a0")], queues, TREE)) == {"j": 1}
    assert bound(decide([node("x")], [job("j", queue="a0")], queues, VOLCANOS_TREE)) == {}


def test_reclaim_prefers_queues_of_the_same_parent() -> None:
    queues = tree(a0_deserved=cpu(1), a1_deserved=cpu(1), b0_deserved=cpu(1))
    jobs = [running(name, 3, "x", queue=name, minimum=1, created_at=at) for at, name in enumerate(("a1", "b0"))]
    jobs.append(job("new", queue="a0"))
    decisions = decide([node("x", "6")], jobs, queues, policy("reclaim", tree=True))
    assert [eviction.job for eviction in decisions.evictions] == ["a1"]


@pytest.mark.parametrize(("level", "evicted"), [(0, 0), (1, 1)])
def test_ancestor_level_reclaims_the_share_of_the_parent(level: int, evicted: int) -> None:
    queues = tree(a_deserved=cpu(4), b_deserved=cpu(2), b0_deserved=cpu(2))
    jobs = [running("borrower", 4, "x", queue="b0", minimum=1), job("new", queue="a0")]
    decisions = decide([node("x")], jobs, queues, policy("reclaim", tree=True, level=level))
    assert len(decisions.evictions) == evicted


def test_queue_tree_has_paths_to_the_root_and_problems() -> None:
    queues = {queue.name: queue for queue in [*tree(), QueueSpec("c", parent="d"), QueueSpec("d", parent="c")]}
    grown = queue_tree.build(queues)
    assert grown.paths["a0"] == ("a0", "a", "root")
    assert grown.paths["c"] == ("c", "root")
    assert grown.problems == {"c": queue_tree.CYCLE, "d": queue_tree.CYCLE}
    assert grown.inner == {"a", "b", "root"}
