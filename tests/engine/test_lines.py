"""Jobs that are alike are looked at together: what is decided is the same as if each was looked at by itself."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.clusters import amounts
from tests.engine.test_kept_world import Both, recognised
from tests.engine.worlds import POLICY, bound, job, node, state
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
IN_WHOLES = parse(DEFAULT_POLICY_TEXT.replace("allocate,", "allocate, gangpreempt, gangreclaim,"))
BY_AGE = parse(DEFAULT_POLICY_TEXT.replace("- name: drf", "- name: sla"))
POLICIES = (POLICY, WITH_EVICTIONS, IN_WHOLES, WITHOUT_ENQUEUE, BY_AGE)


@st.composite
def crowds(draw: st.DrawFn) -> ClusterState:
    """Few kinds of jobs, many of each, more than there is room for."""
    nodes = [node(f"n{at}", str(draw(st.integers(1, 6)))) for at in range(draw(st.integers(1, 4)))]
    capability = st.none() | st.builds(amounts, st.integers(1, 6), st.integers(1, 64))
    queues = [QueueSpec(name, weight=draw(st.integers(1, 3)), capability=draw(capability)) for name in "pq"]
    jobs: list[PodGroupSpec] = []
    for kind in range(draw(st.integers(1, 4))):
        alike = draw(_kinds(f"k{kind}"))
        ages = draw(st.lists(st.integers(0, 5), min_size=1, max_size=8))
        jobs += [_another(alike, f"{alike.name}-{at}", age) for at, age in enumerate(ages)]
    for at in range(draw(st.integers(0, 4))):
        jobs.append(draw(_there(f"there-{at}", nodes)))
    return state(nodes, draw(st.permutations(jobs)), queues)


@st.composite
def _kinds(draw: st.DrawFn, name: str) -> PodGroupSpec:
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
def _there(draw: st.DrawFn, name: str, nodes: list[NodeSpec]) -> PodGroupSpec:
    """One that holds places, perhaps more than it needs."""
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


def _another(like: PodGroupSpec, name: str, age: int) -> PodGroupSpec:
    tasks = tuple(replace(task, uid=f"{name}/{at}", name=f"{name}-w-{at}") for at, task in enumerate(like.pods))
    return replace(like, uid=name, name=name, created_at=float(age), pods=tasks)


def _one_by_one(asked: ClusterState, policy: SchedulerPolicy) -> Decisions:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_queues, "_uses_classes", lambda _session: False)
        patch.setattr(PreemptionCache, "try_once", lambda _self, job, attempt: attempt(job))
        patch.setattr(PreemptionDiagnosis, "is_explained", lambda _self, _job: False)
        return cycle(asked, policy, 0.0)


@given(asked=crowds(), policy=st.sampled_from(POLICIES))
@settings(max_examples=examples(400), deadline=None, derandomize=True)
def test_decided_as_if_one_by_one(asked: ClusterState, policy: SchedulerPolicy) -> None:
    together, alone = cycle(asked, policy, 0.0), _one_by_one(asked, policy)
    assert replace(together, reasons={}) == replace(alone, reasons={})
    assert together.reasons.keys() == alone.reasons.keys()


@given(asked=crowds(), gone=st.lists(st.integers(0, 31), max_size=6), urgent=st.integers(0, 31))
@settings(max_examples=examples(60), deadline=None, derandomize=True)
def test_lines_follow_who_comes_and_goes(asked: ClusterState, gone: list[int], urgent: int) -> None:
    both = Both()
    both.decide(asked, POLICY)
    jobs = [one for at, one in enumerate(asked.jobs) if at not in gone]
    jobs = [replace(one, priority=7) if at == urgent else one for at, one in enumerate(jobs)]
    for changed in (replace(asked, jobs=tuple(jobs)), asked):
        both.decide(recognised(asked, changed), POLICY)


@given(
    lines=st.lists(st.lists(st.integers(), max_size=6, unique=True).map(sorted), max_size=4),
    alone=st.lists(st.integers(), max_size=6),
)
def test_the_first_of_all_lines_comes_out_first(lines: list[list[int]], alone: list[int]) -> None:
    waiting: RankedQueue[int] = RankedQueue(lambda number: number, alone, lines)
    everybody = sorted([*alone, *(number for line in lines for number in line)])
    assert [waiting.pop() for _ in everybody] == everybody
    assert not len(waiting)


def test_those_behind_can_be_taken_out() -> None:
    waiting: RankedQueue[int] = RankedQueue(lambda number: number, [2, 9], [[1, 4, 5], [3]])
    assert waiting.pop() == 1
    assert [*waiting.pop_equivalent()] == [4, 5]
    assert [waiting.pop() for _ in range(len(waiting))] == [2, 3, 9]
    assert [*waiting.pop_equivalent()] == []


def test_who_is_not_let_in_is_told_why_with_all_that_are_alike() -> None:
    jobs = [job(f"j{at}", phase=GangPhase.PENDING, created_at=float(at)) for at in range(9)]
    decisions = cycle(state([node("n", "4")], jobs), POLICY, 0.0)
    assert bound(decisions) == {"j0": 1, "j1": 1, "j2": 1, "j3": 1}
    told = {uid: {one.code for one in why} for uid, why in decisions.reasons.items()}
    assert told == {key: {"cluster_is_full"} for key in ["j4", "j5", "j6", "j7", "j8"]}


def test_one_that_a_session_changed_is_back_in_its_line_afterwards() -> None:
    world, jobs = SchedulerCache(), [job(f"j{at}", created_at=float(at)) for at in range(6)]
    asked = state([node("n", "4")], jobs)
    first = cycle(asked, POLICY, 0.0, cache=world)
    assert cycle(asked, POLICY, 0.0, cache=world) == first
    assert differences(world) == []
    assert [len(line) for line in world.equivalence_classes] == [6]
