"""`gangpreempt` and `gangreclaim`: a starving gang makes room for all its pods, or evicts none."""

from dataclasses import replace

import pytest
from tests.engine import builders

from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import HyperNode, NetworkTopology, PodGroupSpec, PodStatus, QueueSpec
from hekla.engine.policy import parse


def policy(action: str, compatibility: str = "hekla", arguments: str = "{}") -> object:
    return parse(f"""\
actions: "allocate, {action}"
compatibility: {compatibility}
configurations:
- name: {action}
  arguments: {arguments}
tiers:
- plugins:
  - name: gang
  - name: priority
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: network-topology-aware
""")


RACKS = (HyperNode("r0", 1, frozenset(("a0", "a1"))), HyperNode("r1", 1, frozenset(("b0", "b1"))))
CLOSE = NetworkTopology(highest_tier=1)


def decide(action: str, *jobs: PodGroupSpec, queues: list[QueueSpec] | None = None, **more: str) -> Decisions:
    """Two racks of two nodes; each node holds two of the pods used here."""
    nodes = [builders.node(name, cpu="4") for name in ("a0", "a1", "b0", "b1")]
    state = replace(builders.state(nodes, list(jobs), queues), hyper_nodes=RACKS)
    return cycle(state, policy(action, **more), 0.0)


def filler(name: str, nodes: str, minimum: int, **more: object) -> PodGroupSpec:
    """A running gang with one pod of two cores for each name in `nodes`."""
    job = builders.job(name, len(nodes.split()), cpu="2", minimum=minimum, **more)
    tasks = zip(job.pods, nodes.split(), strict=True)
    return replace(job, pods=tuple(replace(task, node=node, status=PodStatus.RUNNING) for task, node in tasks))


def evicted(decisions: Decisions) -> list[str]:
    return sorted(eviction.pod for eviction in decisions.evictions)


def test_pods_beyond_the_minimum_of_a_lower_priority_gang_are_evicted() -> None:
    elastic = filler("low", "a0 a0 a1 a1", minimum=2)
    rigid = filler("rigid", "b0 b0 b1 b1", minimum=4)
    decisions = decide("gangpreempt", elastic, rigid, builders.job("high", 2, cpu="2", priority=10))
    assert len(evicted(decisions)) == 2
    assert all(name.startswith("low") for name in evicted(decisions))
    assert len(decisions.pipelined) == 2
    assert not decisions.binds


@pytest.mark.parametrize(("arguments", "count"), [("{}", 4), ("{allowWholeBundle: false}", 0)])
def test_gang_at_its_minimum_is_evicted_whole_or_not_at_all(arguments: str, count: int) -> None:
    low = [filler("low", "a0 a0 a1 a1", minimum=4), filler("low2", "b0 b0 b1 b1", minimum=4)]
    high = builders.job("high", 3, cpu="2", priority=10)
    decisions = decide("gangpreempt", *low, high, arguments=arguments)
    assert len(evicted(decisions)) == count
    assert len({name.split("/")[0] for name in evicted(decisions)}) == min(count, 1)


@pytest.mark.parametrize("priority", [0, 5])
def test_no_eviction_for_a_gang_without_higher_priority(priority: int) -> None:
    low = filler("low", "a0 a0 a1 a1 b0 b0 b1 b1", minimum=1, priority=5)
    assert not evicted(decide("gangpreempt", low, builders.job("high", 2, cpu="2", priority=priority)))


def test_no_eviction_that_would_not_help() -> None:
    low = filler("low", "a0 a0 a1 a1 b0 b0 b1 b1", minimum=1)
    assert not evicted(decide("gangpreempt", low, builders.job("high", 5, cpu="2", priority=10, topology=CLOSE)))


def test_victims_for_a_topology_constraint_are_in_one_hypernode() -> None:
    low = filler("low", "a0 b0 a1 b1 a0 b0 a1 b1", minimum=1)
    decisions = decide("gangpreempt", low, builders.job("high", 3, cpu="2", priority=10, topology=CLOSE))
    assert len({eviction.node[0] for eviction in decisions.evictions}) == 1
    assert len(decisions.evictions) == len(decisions.pipelined) == 3


def test_next_cycle_binds_the_gang_to_its_nominated_nodes() -> None:
    low = filler("low", "a0 b0 a1 b1 a0 b0 a1 b1", minimum=1)
    high = builders.job("high", 3, cpu="2", priority=10, topology=CLOSE)
    first = decide("gangpreempt", low, high)
    gone = set(evicted(first))
    rest = replace(low, pods=tuple(task for task in low.pods if task.uid not in gone))
    waits = replace(high, pods=tuple(replace(t, nominated_node=first.nominated[t.uid]) for t in high.pods))
    second = decide("gangpreempt", rest, waits)
    assert {bind.pod: bind.node for bind in second.binds} == dict(first.nominated)


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_preempt_and_reclaim_skip_gangs_with_a_topology_constraint(action: str) -> None:
    low = filler("low", "a0 a0 a1 a1 b0 b0 b1 b1", minimum=1)
    high = builders.job("high", 2, cpu="2", priority=10, topology=CLOSE, queue="q" if action == "preempt" else "mine")
    assert not evicted(decide(action, low, high, queues=QUEUES))
    assert evicted(decide(f"gang{action}", low, high, queues=QUEUES))


QUEUES = [QueueSpec("q"), QueueSpec("mine")]


def test_queue_reclaims_its_share_for_a_whole_gang() -> None:
    borrower = filler("borrower", "a0 a0 a1 a1 b0 b0 b1 b1", minimum=2)
    decisions = decide("gangreclaim", borrower, builders.job("own", 3, cpu="2", queue="mine"), queues=QUEUES)
    assert len(evicted(decisions)) == len(decisions.pipelined) == 3


@pytest.mark.parametrize(
    "queues", [[QueueSpec("q", reclaimable=False), QueueSpec("mine")], [QueueSpec("q", weight=9), QueueSpec("mine")]]
)
def test_deserved_share_and_unreclaimable_queue_are_protected(queues: list[QueueSpec]) -> None:
    borrower = filler("borrower", "a0 a0 a1 a1 b0 b0 b1", minimum=2)
    own = builders.job("own", 3, cpu="2", queue="mine")
    assert not evicted(decide("gangreclaim", borrower, own, queues=queues))
