"""Room from evictions goes to the nominated pods, and no more is made than they need (decision 0010)."""

from dataclasses import replace

import pytest
from tests.engine.builders import bound, decide, job, node, running
from tests.engine.clusters import amounts

from hekla.domain.phases import GangPhase
from hekla.engine.model import NodeSpec, PodStatus, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse

ACTIONS = 'actions: "enqueue, allocate, preempt, reclaim, backfill"\n'
DEFAULT = ACTIONS + DEFAULT_POLICY_TEXT.split("\n", 1)[1]
FAIR_JOBS = f"{ACTIONS}tiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: drf\n  - name: predicates\n"
in_both_behaviours = pytest.mark.parametrize("behaviour", ["hekla", "volcano"])


@in_both_behaviours
def test_evicted_pod_does_not_take_the_room_back(behaviour: str) -> None:
    """The queue of the evicted job is first, and yet the nominated gang gets the room."""
    policy = parse(f"{FAIR_JOBS}compatibility: {behaviour}\n")
    here = {"status": PodStatus.RUNNING, "node": "a"}
    elastic = job("elastic", 4, minimum=2, queue="first", phase=GangPhase.RUNNING, task=here)
    gang, queues = job("gang", 2, queue="second"), [QueueSpec("first"), QueueSpec("second")]
    made = decide([node("a", "4")], [elastic, gang], queues, policy)
    assert len(made.evictions) == len(made.nominated) == 2
    evicted = {eviction.pod for eviction in made.evictions}
    again = tuple(replace(t, status=PodStatus.PENDING, node="") if t.uid in evicted else t for t in elastic.pods)
    waiting = tuple(replace(t, nominated_node="a") for t in gang.pods)
    jobs = [replace(elastic, pods=again), replace(gang, pods=waiting)]
    winner = "gang" if behaviour == "hekla" else "elastic"
    assert bound(decide([node("a", "4")], jobs, queues, policy)) == {winner: 2}


@in_both_behaviours
def test_no_eviction_for_a_pod_slot_that_is_being_released(behaviour: str) -> None:
    machine = NodeSpec("a", amounts(8, 8, pods=2))
    leaving = job("old", phase=GangPhase.RUNNING, task={"status": PodStatus.RELEASING, "node": "a"})
    jobs = [leaving, running("idle", 1, "a", minimum=0), job("new", priority=1)]
    decisions = decide([machine], jobs, policy=parse(f"{DEFAULT}compatibility: {behaviour}\n"))
    assert dict(decisions.pipelined) == {"new/0": "a"}
    assert len(decisions.evictions) == (behaviour == "volcano")
