"""Tasks that ask for nothing: wherever the conditions allow, in the order of queues, jobs and tasks."""

from dataclasses import replace

from tests.engine.worlds import bound, decide, job, node

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import NodeSpec, PodStatus, QueueSpec, Taint
from hekla.engine.policy import parse

POLICY = parse(
    """
actions: backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""
)


def places(count: int) -> NodeSpec:
    return NodeSpec("n", Resources.parse({"cpu": "1", "memory": "1Gi", "pods": str(count)}))


def test_tasks_that_ask_for_nothing_go_onto_full_machines() -> None:
    full = job("full", cpu="4", phase=GangPhase.RUNNING, task={"status": PodStatus.RUNNING, "node": "a"})
    assert bound(decide([node("a", "4")], [full, job("free", 3, cpu="")], policy=POLICY)) == {"free": 3}


def test_they_heed_conditions_and_the_number_of_pods() -> None:
    assert bound(decide([node("a", taints=(Taint("k"),))], [job("free", cpu="")], policy=POLICY)) == {}
    assert bound(decide([places(2)], [job("free", 3, cpu="", minimum=1)], policy=POLICY)) == {"free": 2}


def test_a_gang_below_its_minimum_is_not_started() -> None:
    assert bound(decide([places(2)], [job("free", 3, cpu="")], policy=POLICY)) == {}
    assert bound(decide([places(2)], [job("free", 3, cpu="")], policy=replace(POLICY, compatibility="volcano")))


def test_queue_by_queue_then_job_by_job() -> None:
    queues = [QueueSpec("late", created_at=2.0), QueueSpec("early", created_at=1.0)]
    jobs = [
        job("a", 2, cpu="", minimum=1, queue="late"),
        job("b", 2, cpu="", minimum=1, queue="early"),
        job("c", 2, cpu="", minimum=1, queue="early", priority=5),
    ]
    assert bound(decide([places(3)], jobs, queues, POLICY)) == {"c": 2, "b": 1}


def test_a_job_that_was_not_let_in_waits() -> None:
    assert bound(decide([places(9)], [job("free", cpu="", phase=GangPhase.PENDING)], policy=POLICY)) == {}
