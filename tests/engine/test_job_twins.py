"""Jobs of equal shape share what they have in common, and equal jobs that were examined alone."""

from dataclasses import replace

import pytest
from tests.engine.builders import POLICY, job, node, running, state

from hekla.domain.resources import Resources
from hekla.engine import audit, cycle
from hekla.engine.constraints import PodAffinityTerm, PodConstraints, PodSelector, Requirement
from hekla.engine.job_info import JobInfo
from hekla.engine.job_twins import shape_of, twins_of_one_pod
from hekla.engine.model import NetworkTopology, PodGroupSpec, PodStatus
from hekla.engine.scheduler_cache import SchedulerCache

_NOT_COMPARED = {"group", "_classes", "_pods", "_shares_counts", "pod_classes", "queue_amounts", "equivalence_class"}


def facts(found: JobInfo) -> dict[str, object]:
    """Everything in a job, in a form that can be compared."""
    slots = {name: getattr(found, name) for name in JobInfo.__slots__ if name not in _NOT_COMPARED}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in slots.items()}


@pytest.mark.parametrize("build", [lambda name: job(name, 3, cpu="2", priority=7), lambda name: running(name, 2, "n")])
def test_twin_equals_a_job_examined_alone(build) -> None:
    one, other = build("one"), build("other")
    assert shape_of(one) == shape_of(other)
    together, alone = (
        SchedulerCache.of(state([node("n")], [one, other])),
        SchedulerCache.of(state([node("n")], [other])),
    )
    assert facts(together.jobs["other"]) == facts(alone.jobs["other"])
    assert together.jobs["other"].count_by_status is together.jobs["one"].count_by_status
    assert together.queue_totals.by_queue["q"].jobs == 2
    assert audit.differences(together) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"priority": 1},
        {"queue": "other"},
        {"owner": "ann"},
        {"minimum": 3},
        {"topology": NetworkTopology()},
        {"task": {"status": PodStatus.FAILED}},
        {"task": {"priority": 9}},
        {"task": {"nominated_node": "n"}},
        {"task": {"node_selector": {"zone": "a"}}},
        {"task": {"constraints": PodConstraints(images=("x",))}},
        {"cpu": "3"},
        {"pods": 4},
    ],
)
def test_shape_differs_with_everything_that_a_job_info_contains(changes: dict) -> None:
    assert shape_of(job("b", **{"pods": 2, **changes})) != shape_of(job("a", 2))
    assert not twins_of_one_pod(job("a"))(job("b", **changes))


@pytest.mark.parametrize(
    "changes", [{"min_available": 5}, {"min_task_member": {"w": 5}}, {"min_resources": Resources({"cpu": 5.0})}]
)
def test_shape_differs_with_each_minimum(changes: dict) -> None:
    assert shape_of(replace(job("b", 2), **changes)) != shape_of(job("a", 2))
    assert not twins_of_one_pod(job("a"))(replace(job("b"), **changes))


def test_twins_of_one_pod_need_not_share_their_amounts() -> None:
    assert twins_of_one_pod(job("a", cpu="2"))(job("b", cpu="2"))
    assert not twins_of_one_pod(job("a"))(replace(job("b"), min_resources=None))


def test_job_with_different_pods_has_no_shape() -> None:
    group = job("a", 2)
    pods = group.pods[0], replace(group.pods[1], priority=5)
    assert shape_of(replace(group, pods=pods)) is None
    assert shape_of(replace(group, pods=())) is None


def built(cache: SchedulerCache) -> set[str]:
    return {found.group.uid for found in cache.jobs.stand_ins() if not found.is_template}


def classes(cache: SchedulerCache) -> set[frozenset[str]]:
    return {frozenset(one.uids()) for one in cache.equivalence_classes}


def test_only_jobs_that_come_up_are_built() -> None:
    """Two of five fit, the third is tried; the others get its reason."""
    jobs, cache = [job(name, cpu="2", created_at=float(at)) for at, name in enumerate("edcba")], SchedulerCache()
    decisions = cycle(state([node("n", cpu="4")], jobs), POLICY, 0.0, cache=cache)
    assert [bind.job for bind in decisions.binds] == ["e", "d"]
    assert decisions.reasons.keys() == {"c", "b", "a"}
    assert decisions.phases.keys() == {*"abcde"}
    assert built(cache) == {"e", "d", "c"}
    assert cache.jobs["a"] is cache.unsettled_jobs["a"]
    assert audit.differences(cache) == []


def test_unbuilt_jobs_come_and_go() -> None:
    cache, jobs = SchedulerCache(), [job(name) for name in "abcd"]
    cache.update(state([node("n")], jobs))
    for now in (jobs[1:], jobs[1:3], [*jobs[1:3], job("e"), job("f")], [replace(jobs[1], priority=3), jobs[2]], []):
        cache.update(state([node("n")], now))
        assert [*cache.jobs] == [*cache.unsettled_jobs] == [group.uid for group in now]
        assert audit.differences(cache) == []


def test_twins_that_match_a_selector_are_built_and_apart() -> None:
    """Their pods belong to another class."""
    selector = PodSelector((Requirement("app", "In", ("x",)),), frozenset({""}))
    own = PodConstraints(pod_anti_affinity=(PodAffinityTerm(selector, "zone"),))
    picky = job("picky", task={"constraints": own})
    jobs = [job(name, task={"labels": {"app": app}}) for name, app in zip("abcd", "xyxy", strict=True)]
    for order in ([picky, *jobs], [*jobs, picky]):
        cache = SchedulerCache.of(state([node("n")], order))
        assert built(cache) == {"picky", "a", "c"}
        assert {frozenset(one.uids()) for one in cache.equivalence_classes} == {
            *map(frozenset, ("ac", "bd", ["picky"]))
        }
        cache.update(state([node("n")], jobs))
        assert classes(cache) == {frozenset("abcd")}
        assert audit.differences(cache) == []


def test_change_of_one_twin_leaves_the_other() -> None:
    """Two of three fit: the third one still waits, in this cycle and the next."""
    jobs: list[PodGroupSpec] = [job(name, cpu="2") for name in ("a", "b", "c")]
    cache = SchedulerCache()
    for _ in range(2):
        decisions = cycle(state([node("n", cpu="4")], jobs), POLICY, 0.0, cache=cache)
        assert [bind.job for bind in decisions.binds] == ["a", "b"]
        counts = {name: dict(found.count_by_status) for name, found in cache.jobs.items()}
        assert counts["a"][PodStatus.BINDING] == counts["b"][PodStatus.BINDING] == 1
        assert counts["c"][PodStatus.PENDING] == 1
        assert audit.differences(cache) == []
