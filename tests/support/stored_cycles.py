"""A stored cycle of a small scene: one job is placed, and an urgent one evicts pods of another."""

from tests.engine.builders import job, node, running, state

from hekla.apps.clusters.models import Cluster
from hekla.apps.cycle_records.models import CycleRecord
from hekla.domain.taints import Taint
from hekla.engine import cycle
from hekla.engine.model import ClusterState
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.lib import clock
from hekla.scheduling.cycle_document import RecordedCycle, outcome_of, pack

POLICY = DEFAULT_POLICY_TEXT.replace("allocate, ", "allocate, preempt, ")
PLACED, URGENT, WIDE = "1", "2", "3"
"""Jobs by their number: placed at once, placed by evictions, and too wide."""


def scene() -> ClusterState:
    nodes = [node("free", "2"), node("tainted", "8", taints=(Taint("k"),)), node("full", "4")]
    jobs = [
        job(PLACED, 1, cpu="2"),
        job(URGENT, 1, cpu="3", priority=9),
        job(WIDE, 1, cpu="90"),
        running("4", 4, "full", minimum=0),
    ]
    return state(nodes, jobs)


def recorded_scene() -> RecordedCycle:
    cluster = scene()
    decisions = cycle(cluster, parse(POLICY), 0.0)
    return RecordedCycle(cluster, POLICY, 0.0, outcome_of(cluster, decisions, tuple(decisions.reasons)))


def store_cycle(cluster: Cluster, **more: object) -> CycleRecord:
    """Store the scene as a cycle of this cluster."""
    found = recorded_scene()
    data, outcome = pack(found), found.outcome
    values = {
        "trigger": "events", "engine_ms": 1.5, "jobs": 3, "pods": 7, "admissions": 0, "binds": len(outcome.binds),
        "evictions": len(outcome.evictions), "pipelined": len(outcome.pipelined), "refusals": 1, "data": data,
        "size": len(data),
    }  # fmt: skip
    return CycleRecord.objects.create(cluster=cluster, at=clock.now(), **values | more)
