"""Elastic gangs (`volcano-spec` §7), and two deadlocks that must not be: the engine alone."""

import pytest
from tests.engine.worlds import bound, job, node, running, state

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import PodGroupSpec, PodSpec, QueueSpec
from hekla.engine.policy import parse

# The plugins and their tiers as in the examples; cpu stands for GPUs.
TEXT = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}%s]
compatibility: %s
"""
QUEUES = [QueueSpec("queue1"), QueueSpec("queue2")]
COMPATIBILITY = pytest.mark.parametrize("compatibility", ["hekla", "volcano"])


def decide(jobs: list[PodGroupSpec], compatibility: str, cpus: int = 10, more: str = "") -> Decisions:
    world = state([node("a", str(cpus))], jobs, QUEUES)
    return cycle(world, parse(TEXT % (more, compatibility)), 0.0)


def elastic(name: str, queue: str = "queue1", minimum: int = 5, **more: object) -> PodGroupSpec:
    return job(name, 10, minimum=minimum, queue=queue, phase=GangPhase.PENDING, **more)


def full(name: str = "job1-1") -> PodGroupSpec:
    return running(name, 10, "a", minimum=5, queue="queue1")


def evicted(decisions: Decisions) -> list[str]:
    return [eviction.job for eviction in decisions.evictions]


@COMPATIBILITY
def test_two_jobs_submitted_together_both_get_their_minimum(compatibility: str) -> None:
    decisions = decide([elastic("job1-1"), elastic("job1-2")], compatibility)
    assert bound(decisions) == {"job1-1": 5, "job1-2": 5}
    assert not decisions.evictions


@COMPATIBILITY
def test_what_is_over_both_minimums_is_shared_one_by_one(compatibility: str) -> None:
    assert bound(decide([elastic("job1-1"), elastic("job1-2")], compatibility, 14)) == {"job1-1": 7, "job1-2": 7}


@COMPATIBILITY
@pytest.mark.parametrize("priority", [0, 9])
def test_a_later_job_of_the_same_queue_takes_what_is_over_the_minimum(compatibility: str, priority: int) -> None:
    decisions = decide([full(), elastic("job1-2", priority=priority)], compatibility)
    assert evicted(decisions) == ["job1-1"] * 5
    assert len(decisions.pipelined) == 5


@COMPATIBILITY
def test_overcommit_does_not_let_it_in(compatibility: str) -> None:
    decisions = decide([full(), elastic("job1-2")], compatibility, more=", {name: overcommit}")
    assert decisions.phases["job1-2"] is GangPhase.PENDING
    assert not decisions.evictions


@COMPATIBILITY
def test_a_job_of_another_queue_takes_its_share_back(compatibility: str) -> None:
    decisions = decide([full(), elastic("job2-1", "queue2")], compatibility)
    assert evicted(decisions) == ["job1-1"] * 5
    assert len(decisions.pipelined) == 5


@COMPATIBILITY
def test_a_minimum_that_does_not_fit_beside_the_other_is_not_let_in(compatibility: str) -> None:
    decisions = decide([full(), elastic("job1-3", minimum=8)], compatibility)
    assert decisions.phases["job1-3"] is GangPhase.PENDING
    assert not decisions.evictions


# Deadlocks.


@COMPATIBILITY
def test_two_jobs_of_four_workers_on_four_gpus_run_one_after_the_other(compatibility: str) -> None:
    first, second = (job(name, 4, queue="queue1", phase=GangPhase.PENDING) for name in ("first", "second"))
    decisions = decide([first, second], compatibility, 4)
    assert bound(decisions) == {"first": 4}
    assert not decisions.evictions
    later = decide([running("first", 4, "a", queue="queue1"), second], compatibility, 4)
    assert not later.binds
    assert not later.evictions
    assert bound(decide([second], compatibility, 4)) == {"second": 4}


def trains(name: str, at: float) -> PodGroupSpec:
    """Two parameter servers and four workers, who talk to each other."""
    roles = [("ps", n) for n in range(2)] + [("worker", n) for n in range(4)]
    request = Resources.parse({"cpu": "1"})
    tasks = tuple(PodSpec(f"{name}/{role}-{n}", f"{name}-{role}-{n}", role, request) for role, n in roles)
    wish = {"volcano.sh/task-topology-affinity": "ps,worker"}
    return PodGroupSpec(name, name, queue="queue1", min_available=6, pods=tasks, annotations=wish, created_at=at,
               phase=GangPhase.INQUEUE)  # fmt: skip


@COMPATIBILITY
def test_servers_and_workers_of_a_job_land_on_one_node_where_they_fit(compatibility: str) -> None:
    nodes = [node(name, "6") for name in ("a", "b", "c")]
    world = state(nodes, [trains("one", 1.0), trains("two", 2.0), trains("three", 3.0)], QUEUES)
    decisions = cycle(world, parse(TEXT % (", {name: task-topology}", compatibility)), 0.0)
    used = {name: {bind.node for bind in decisions.binds if bind.job == name} for name in ("one", "two", "three")}
    assert bound(decisions) == {"one": 6, "two": 6, "three": 6}
    assert [len(nodes) for nodes in used.values()] == [1, 1, 1]
