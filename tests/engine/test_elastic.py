"""Elastic gangs (`volcano-spec` §7), and two cases that must not deadlock: the engine alone."""

import pytest
from tests.engine.builders import bound, job, node, running, state

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import PodGroupSpec, PodSpec, QueueSpec
from hekla.engine.policy import parse

# The plugins and tiers of the examples; CPUs stand for GPUs.
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
    cluster = state([node("a", str(cpus))], jobs, QUEUES)
    return cycle(cluster, parse(TEXT % (more, compatibility)), 0.0)


def elastic(name: str, queue: str = "queue1", minimum: int = 5, **more: object) -> PodGroupSpec:
    return job(name, 10, minimum=minimum, queue=queue, phase=GangPhase.PENDING, **more)


def running_job(name: str = "job1-1") -> PodGroupSpec:
    return running(name, 10, "a", minimum=5, queue="queue1")


def evicted(decisions: Decisions) -> list[str]:
    return [eviction.job for eviction in decisions.evictions]


@COMPATIBILITY
def test_two_jobs_submitted_together_get_their_minimums(compatibility: str) -> None:
    decisions = decide([elastic("job1-1"), elastic("job1-2")], compatibility)
    assert bound(decisions) == {"job1-1": 5, "job1-2": 5}
    assert not decisions.evictions


@COMPATIBILITY
def test_room_beyond_both_minimums_is_shared_pod_by_pod(compatibility: str) -> None:
    assert bound(decide([elastic("job1-1"), elastic("job1-2")], compatibility, 14)) == {"job1-1": 7, "job1-2": 7}


@COMPATIBILITY
@pytest.mark.parametrize("priority", [0, 9])
def test_later_job_of_the_same_queue_preempts_pods_beyond_the_minimum(compatibility: str, priority: int) -> None:
    decisions = decide([running_job(), elastic("job1-2", priority=priority)], compatibility)
    assert evicted(decisions) == ["job1-1"] * 5
    assert len(decisions.pipelined) == 5


@COMPATIBILITY
def test_overcommit_does_not_admit_the_later_job(compatibility: str) -> None:
    decisions = decide([running_job(), elastic("job1-2")], compatibility, more=", {name: overcommit}")
    assert decisions.phases["job1-2"] is GangPhase.PENDING
    assert not decisions.evictions


@COMPATIBILITY
def test_job_of_another_queue_reclaims_its_share(compatibility: str) -> None:
    decisions = decide([running_job(), elastic("job2-1", "queue2")], compatibility)
    assert evicted(decisions) == ["job1-1"] * 5
    assert len(decisions.pipelined) == 5


@COMPATIBILITY
def test_job_whose_minimum_does_not_fit_is_not_admitted(compatibility: str) -> None:
    decisions = decide([running_job(), elastic("job1-3", minimum=8)], compatibility)
    assert decisions.phases["job1-3"] is GangPhase.PENDING
    assert not decisions.evictions


# Deadlocks.


@COMPATIBILITY
def test_two_jobs_of_four_workers_on_four_gpus_run_in_sequence(compatibility: str) -> None:
    first, second = (job(name, 4, queue="queue1", phase=GangPhase.PENDING) for name in ("first", "second"))
    decisions = decide([first, second], compatibility, 4)
    assert bound(decisions) == {"first": 4}
    assert not decisions.evictions
    later = decide([running("first", 4, "a", queue="queue1"), second], compatibility, 4)
    assert not later.binds
    assert not later.evictions
    assert bound(decide([second], compatibility, 4)) == {"second": 4}


def training_job(name: str, at: float) -> PodGroupSpec:
    """Two parameter servers and four workers with an affinity to each other."""
    roles = [("ps", n) for n in range(2)] + [("worker", n) for n in range(4)]
    request = Resources.parse({"cpu": "1"})
    tasks = tuple(PodSpec(f"{name}/{role}-{n}", f"{name}-{role}-{n}", role, request) for role, n in roles)
    affinity = {"volcano.sh/task-topology-affinity": "ps,worker"}
    return PodGroupSpec(name, name, queue="queue1", min_available=6, pods=tasks, annotations=affinity, created_at=at,
               phase=GangPhase.INQUEUE)  # fmt: skip


@COMPATIBILITY
def test_servers_and_workers_share_a_node_if_they_fit(compatibility: str) -> None:
    nodes = [node(name, "6") for name in ("a", "b", "c")]
    cluster = state(nodes, [training_job("one", 1.0), training_job("two", 2.0), training_job("three", 3.0)], QUEUES)
    decisions = cycle(cluster, parse(TEXT % (", {name: task-topology}", compatibility)), 0.0)
    used = {name: {bind.node for bind in decisions.binds if bind.job == name} for name in ("one", "two", "three")}
    assert bound(decisions) == {"one": 6, "two": 6, "three": 6}
    assert [len(nodes) for nodes in used.values()] == [1, 1, 1]
