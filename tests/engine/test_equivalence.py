"""Equivalence classes: jobs of one class are decided together, with the same result as one by one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import POLICY, bound, job, node, state
from tests.engine.clusters import amounts
from tests.engine.test_scheduler_cache import ComparedCycles, with_shared_objects
from tests.support.examples import examples

from hekla.domain.phases import GangPhase
from hekla.engine import cycle, job_queues
from hekla.engine.audit import differences
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodStatus, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse
from hekla.engine.preemption_cache import PreemptionCache
from hekla.engine.preemption_diagnosis import PreemptionDiagnosis
from hekla.engine.priority_queue import RankedQueue
from hekla.engine.scheduler_cache import SchedulerCache

WITH_EVICTIONS = parse(DEFAULT_POLICY_TEXT.replace("allocate,", "allocate, preempt, reclaim,"))
WITHOUT_ENQUEUE = parse(DEFAULT_POLICY_TEXT.replace("enqueue, ", ""))
WHOLE_GANGS = parse(DEFAULT_POLICY_TEXT.replace("allocate,", "allocate, gangpreempt, gangreclaim,"))
BY_AGE = parse(DEFAULT_POLICY_TEXT.replace("- name: drf", "- name: sla"))
POLICIES = (POLICY, WITH_EVICTIONS, WHOLE_GANGS, WITHOUT_ENQUEUE, BY_AGE)


@st.composite
def clusters_of_equal_jobs(draw: st.DrawFn) -> ClusterState:
    """Clusters with many equal jobs of few kinds, more than there is room for."""
    nodes = [node(f"n{at}", str(draw(st.integers(1, 6)))) for at in range(draw(st.integers(1, 4)))]
    capability = st.none() | st.builds(amounts, st.integers(1, 6), st.integers(1, 64))
    queues = [QueueSpec(name, weight=draw(st.integers(1, 3)), capability=draw(capability)) for name in "pq"]
    jobs: list[PodGroupSpec] = []
    for kind in range(draw(st.integers(1, 4))):
        template = draw(_job_templates(f"k{kind}"))
        ages = draw(st.lists(st.integers(0, 5), min_size=1, max_size=8))
        jobs += [_copy(template, f"{template.name}-{at}", age) for at, age in enumerate(ages)]
    for at in range(draw(st.integers(0, 4))):
        jobs.append(draw(_running_jobs(f"there-{at}", nodes)))
    return state(nodes, draw(st.permutations(jobs)), queues)


@st.composite
def _job_templates(draw: st.DrawFn, name: str) -> PodGroupSpec:
    pods = draw(st.integers(1, 3))
    return job(
        name,
        pods,
        cpu=draw(st.sampled_from(["500m", "1", "2"])),
        minimum=draw(st.integers(1, pods)),
        queue=draw(st.sampled_from("pq")),
        priority=draw(st.integers(0, 1)),
        phase=draw(st.sampled_from([GangPhase.PENDING, GangPhase.INQUEUE])),
    )


@st.composite
def _running_jobs(draw: st.DrawFn, name: str, nodes: list[NodeSpec]) -> PodGroupSpec:
    """A job with running, bound or releasing pods, perhaps more than its minimum."""
    status = draw(st.sampled_from([PodStatus.RUNNING, PodStatus.BOUND, PodStatus.RELEASING]))
    urgency = draw(st.integers(0, 1))
    task = {"status": status, "node": draw(st.sampled_from(nodes)).name, "priority": urgency}
    pods = draw(st.integers(1, 2))
    return job(
        name,
        pods,
        minimum=draw(st.integers(1, pods)),
        queue=draw(st.sampled_from("pq")),
        priority=urgency,
        phase=GangPhase.RUNNING,
        task=task,
    )


def _copy(like: PodGroupSpec, name: str, age: int) -> PodGroupSpec:
    tasks = tuple(replace(task, uid=f"{name}/{at}", name=f"{name}-w-{at}") for at, task in enumerate(like.pods))
    return replace(like, uid=name, name=name, created_at=float(age), pods=tasks)


def _decide_without_classes(cluster: ClusterState, policy: SchedulerPolicy) -> Decisions:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_queues, "_uses_classes", lambda _session: False)
        patch.setattr(PreemptionCache, "try_once", lambda _self, job, attempt: attempt(job))
        patch.setattr(PreemptionDiagnosis, "is_explained", lambda _self, _job: False)
        return cycle(cluster, policy, 0.0)


@given(cluster=clusters_of_equal_jobs(), policy=st.sampled_from(POLICIES))
@settings(max_examples=examples(400), deadline=None, derandomize=True)
def test_classes_decide_as_job_by_job(cluster: ClusterState, policy: SchedulerPolicy) -> None:
    together, alone = cycle(cluster, policy, 0.0), _decide_without_classes(cluster, policy)
    assert replace(together, reasons={}) == replace(alone, reasons={})
    assert together.reasons.keys() == alone.reasons.keys()


@given(cluster=clusters_of_equal_jobs(), gone=st.lists(st.integers(0, 31), max_size=6), urgent=st.integers(0, 31))
@settings(max_examples=examples(60), deadline=None, derandomize=True)
def test_classes_follow_added_and_removed_jobs(cluster: ClusterState, gone: list[int], urgent: int) -> None:
    cycles = ComparedCycles()
    cycles.decide(cluster, POLICY)
    jobs = [one for at, one in enumerate(cluster.jobs) if at not in gone]
    jobs = [replace(one, priority=7) if at == urgent else one for at, one in enumerate(jobs)]
    for changed in (replace(cluster, jobs=tuple(jobs)), cluster):
        cycles.decide(with_shared_objects(cluster, changed), POLICY)


@given(
    groups=st.lists(st.lists(st.integers(), max_size=6, unique=True).map(sorted), max_size=4),
    alone=st.lists(st.integers(), max_size=6),
)
def test_ranked_queue_pops_the_first_of_all_groups(groups: list[list[int]], alone: list[int]) -> None:
    classes = [[*map(str, group)] for group in groups]
    waiting: RankedQueue[int] = RankedQueue(lambda number: number, int, alone, classes)
    expected = sorted([*alone, *(number for group in groups for number in group)])
    assert [waiting.pop() for _ in expected] == expected
    assert not len(waiting)


def test_equivalent_items_can_be_popped() -> None:
    waiting: RankedQueue[int] = RankedQueue(lambda number: number, int, [2, 9], [["1", "4", "5"], ["3"]])
    assert waiting.pop() == 1
    assert [*waiting.pop_equivalent()] == ["4", "5"]
    assert [waiting.pop() for _ in range(len(waiting))] == [2, 3, 9]
    assert [*waiting.pop_equivalent()] == []


def test_all_equivalent_jobs_get_the_reason() -> None:
    jobs = [job(f"j{at}", phase=GangPhase.PENDING, created_at=float(at)) for at in range(9)]
    decisions = cycle(state([node("n", "4")], jobs), POLICY, 0.0)
    assert bound(decisions) == {"j0": 1, "j1": 1, "j2": 1, "j3": 1}
    codes = {uid: {one.code for one in reasons} for uid, reasons in decisions.reasons.items()}
    assert codes == {key: {"cluster_is_full"} for key in ["j4", "j5", "j6", "j7", "j8"]}


def test_changed_job_returns_to_its_class_in_the_next_cycle() -> None:
    cache, jobs = SchedulerCache(), [job(f"j{at}", created_at=float(at)) for at in range(6)]
    cluster = state([node("n", "4")], jobs)
    first = cycle(cluster, POLICY, 0.0, cache=cache)
    assert cycle(cluster, POLICY, 0.0, cache=cache) == first
    assert differences(cache) == []
    assert [len(group) for group in cache.equivalence_classes] == [6]
