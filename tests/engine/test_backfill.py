"""Backfill: pods without requests start wherever constraints allow, in the order of queues, jobs and tasks."""

from dataclasses import replace

from tests.engine.builders import bound, decide, job, node

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine.model import NodeSpec, PodStatus, QueueSpec
from hekla.engine.policy import parse

POLICY = parse(
    """
actions: backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""
)


def node_with_pod_slots(count: int) -> NodeSpec:
    return NodeSpec("n", Resources.parse({"cpu": "1", "memory": "1Gi", "pods": str(count)}))


def test_pods_without_requests_start_on_full_nodes() -> None:
    full = job("full", cpu="4", phase=GangPhase.RUNNING, task={"status": PodStatus.RUNNING, "node": "a"})
    assert bound(decide([node("a", "4")], [full, job("free", 3, cpu="")], policy=POLICY)) == {"free": 3}


def test_backfill_respects_taints_and_pod_limit() -> None:
    assert bound(decide([node("a", taints=(Taint("k"),))], [job("free", cpu="")], policy=POLICY)) == {}
    assert bound(decide([node_with_pod_slots(2)], [job("free", 3, cpu="", minimum=1)], policy=POLICY)) == {"free": 2}


def test_a_gang_below_its_minimum_is_not_started() -> None:
    assert bound(decide([node_with_pod_slots(2)], [job("free", 3, cpu="")], policy=POLICY)) == {}
    assert bound(
        decide([node_with_pod_slots(2)], [job("free", 3, cpu="")], policy=replace(POLICY, compatibility="volcano"))
    )


def test_backfill_order_is_queues_then_jobs() -> None:
    queues = [QueueSpec("late", created_at=2.0), QueueSpec("early", created_at=1.0)]
    jobs = [
        job("a", 2, cpu="", minimum=1, queue="late"),
        job("b", 2, cpu="", minimum=1, queue="early"),
        job("c", 2, cpu="", minimum=1, queue="early", priority=5),
    ]
    assert bound(decide([node_with_pod_slots(3)], jobs, queues, POLICY)) == {"c": 2, "b": 1}


def test_backfill_skips_jobs_that_are_not_admitted() -> None:
    assert bound(decide([node_with_pod_slots(9)], [job("free", cpu="", phase=GangPhase.PENDING)], policy=POLICY)) == {}
