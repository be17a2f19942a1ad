"""Invariants that hold in every cycle of random cluster histories."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.clusters import amounts
from tests.engine.histories import HOLDING, History
from tests.support.examples import examples

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse

ALL_ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"
WITH_EVICTIONS = DEFAULT_POLICY_TEXT.replace("enqueue, allocate, backfill", ALL_ACTIONS)
DEFAULT = parse(WITH_EVICTIONS)
LIKE_VOLCANO = parse(WITH_EVICTIONS + "compatibility: volcano\n")
GANGS_BY_PRIORITY = parse(
    f'actions: "{ALL_ACTIONS}"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
    "- plugins:\n  - name: predicates\n  - name: proportion\n  - name: binpack\n"
)
FAIR_JOBS = parse(
    f'actions: "{ALL_ACTIONS}"\ntiers:\n- plugins:\n  - name: gang\n'
    "- plugins:\n  - name: drf\n  - name: predicates\n  - name: nodeorder\n"
)
POLICIES = {"default": DEFAULT, "volcano": LIKE_VOLCANO, "priority": GANGS_BY_PRIORITY, "drf": FAIR_JOBS}
SEEDS = st.integers(0, 2**32)
SLACK = 0.2
TIME_TO_SETTLE, QUIET = 30, 10


def tasks_of(state: ClusterState) -> dict[str, PodSpec]:
    return {task.uid: task for job in state.jobs for task in job.pods}


def request_of(task: PodSpec) -> Resources:
    return task.request + {"pods": 1.0}


def on_nodes(state: ClusterState, *, leaving: bool) -> dict[str, Resources]:
    """The used resources of each node; releasing pods count only if `leaving`."""
    used = {node.name: Resources() for node in state.nodes}
    for task in tasks_of(state).values():
        if task.status in HOLDING and (leaving or task.status is not PodStatus.RELEASING):
            used[task.node] += request_of(task)
    return used


def held(state: ClusterState, decisions: Decisions) -> dict[str, Resources]:
    """What each queue holds after the decisions."""
    bound = {bind.pod for bind in decisions.binds}
    found = {queue.name: Resources() for queue in state.queues}
    for job in state.jobs:
        for task in job.pods:
            if task.status in (PodStatus.RUNNING, PodStatus.BOUND) or task.uid in bound:
                found[job.queue] += request_of(task)
    return found


def check_binds(state: ClusterState, decisions: Decisions) -> None:
    """Each bind is for a pending task, once, on an allowed node; no node exceeds its allocatable resources."""
    tasks, nodes = tasks_of(state), {node.name: node for node in state.nodes}
    used = on_nodes(state, leaving=True)
    assert len({bind.pod for bind in decisions.binds}) == len(decisions.binds)
    for bind in decisions.binds:
        task = tasks[bind.pod]
        assert task.status is PodStatus.PENDING
        assert all(nodes[bind.node].labels.get(name) == value for name, value in task.node_selector.items())
        used[bind.node] += request_of(task)
    for name, amount in used.items():
        assert not over(amount, nodes[name].allocatable), name


def over(amount: Resources, bound: Resources) -> bool:
    return any(much > bound.amount(name) + SLACK for name, much in amount.items())


def check_gangs(state: ClusterState, decisions: Decisions) -> None:
    """Each job with a bind has its minimum."""
    bound = Counter(bind.job for bind in decisions.binds)
    for job in state.jobs:
        if bound[job.uid]:
            held_before = Counter(task.status for task in job.pods)
            there = held_before[PodStatus.RUNNING] + held_before[PodStatus.BOUND] + held_before[PodStatus.SUCCEEDED]
            assert there + bound[job.uid] >= job.min_available, job.uid


def check_queues(state: ClusterState, decisions: Decisions) -> None:
    """No queue grows beyond its capability or into the guarantees of others."""
    grown = {job.queue for job in state.jobs for bind in decisions.binds if bind.job == job.uid}
    total = sum((node.allocatable for node in state.nodes), Resources())
    promised = sum((queue.guarantee or Resources() for queue in state.queues), Resources())
    for queue in state.queues:
        have = held(state, decisions)[queue.name]
        own = queue.guarantee or Resources()
        for name in ("cpu", "memory") if queue.name in grown else ():
            bound = (queue.capability or total).amount(name)
            unguaranteed = max(total.amount(name) - promised.amount(name), 0.0) + own.amount(name)
            assert have.amount(name) <= max(min(bound, unguaranteed), own.amount(name)) + SLACK, (queue.name, name)


def check_evictions(state: ClusterState, decisions: Decisions, policy: SchedulerPolicy) -> None:
    """Each eviction is for a job that is pipelined onto that node, and frees what was short: room or a share."""
    tasks, queues = tasks_of(state), {job.uid: job.queue for job in state.jobs}
    crowded = _crowded(state, decisions, pods_leaving_count=policy.follows_volcano)
    winners = {(uid_of_job(state, uid), node) for uid, node in decisions.pipelined.items()}
    for eviction in decisions.evictions:
        assert tasks[eviction.pod].status in (PodStatus.RUNNING, PodStatus.BOUND)
        assert tasks[eviction.pod].preemptable
        assert (eviction.for_job, eviction.node) in winners
        is_of_its_queue = queues[eviction.job] == queues[eviction.for_job]
        assert is_of_its_queue is (eviction.action == "preempt")
        assert eviction.node in crowded or (is_of_its_queue and _is_short_of_share(decisions, eviction.for_job))


def _crowded(state: ClusterState, decisions: Decisions, *, pods_leaving_count: bool) -> set[str]:
    """The nodes without room for everything if nothing were evicted; all nodes if a job kept unused placements."""
    nodes = {node.name: node for node in state.nodes}
    if any(counts.get(PodStatus.ALLOCATED) for counts in decisions.counts.values()):
        return set(nodes)
    tasks, used = tasks_of(state), on_nodes(state, leaving=pods_leaving_count)
    for uid, node in [*((bind.pod, bind.node) for bind in decisions.binds), *decisions.pipelined.items()]:
        used[node] += request_of(tasks[uid])
    return {name for name, amount in used.items() if over(amount, nodes[name].allocatable)}


def _is_short_of_share(decisions: Decisions, job: str) -> bool:
    return any(reason.code in ("queue_share_used", "queue_overused") for reason in decisions.reasons.get(job, ()))


def uid_of_job(state: ClusterState, task: str) -> str:
    return next(job.uid for job in state.jobs for one in job.pods if one.uid == task)


@pytest.mark.parametrize("name", POLICIES)
@given(seed=SEEDS)
@settings(max_examples=examples(12, least=1), deadline=None, derandomize=True)
def test_invariants_hold_in_every_cycle(name: str, seed: int) -> None:
    policy = POLICIES[name]
    has_queues = any(option.name == "proportion" for tier in policy.tiers for option in tier)
    for state, decisions in History(seed, policy).run_with_changes(60):
        check_binds(state, decisions)
        check_gangs(state, decisions)
        check_evictions(state, decisions, policy)
        if has_queues:
            check_queues(state, decisions)


@pytest.mark.parametrize("name", ["default", "priority", "drf"])
@given(seed=SEEDS)
@settings(max_examples=examples(12, least=1), deadline=None, derandomize=True)
def test_evictions_end(name: str, seed: int) -> None:
    """Evicted pods are created again. Without other changes, evictions do not go on endlessly."""
    history = History(seed, POLICIES[name])
    assert any(True for _ in history.run_with_changes(25))
    list(history.run_without_changes(TIME_TO_SETTLE))
    late = [decisions.evictions for _, decisions in history.run_without_changes(QUIET)]
    assert not any(late)


@given(
    weights=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    nodes=st.integers(1, 6),
    least=st.integers(1, 3),
)
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_saturated_queues_share_by_weight(weights: list[int], nodes: int, least: int) -> None:
    """Shares deviate by less than one task, with tasks of one size."""
    cores = nodes * 8
    queues = tuple(QueueSpec(f"q{at}", weight=weight) for at, weight in enumerate(weights))
    jobs = tuple(_job_larger_than_the_cluster(queue, cores) for queue in queues)
    state = ClusterState(tuple(NodeSpec(f"n{at}", amounts(8, 64, 110)) for at in range(nodes)), queues, jobs)
    binds = Counter(bind.job for bind in cycle(state, DEFAULT, 0.0).binds)
    for queue in queues:
        assert abs(binds[queue.name] - cores * queue.weight / sum(weights)) < 1


def _job_larger_than_the_cluster(queue: QueueSpec, pods: int) -> PodGroupSpec:
    name = queue.name
    tasks = tuple(PodSpec(f"{name}-w-{at}", f"{name}-w-{at}", "w", amounts(1, 1)) for at in range(pods))
    return PodGroupSpec(name, name, name, phase=GangPhase.INQUEUE, pods=tasks)
