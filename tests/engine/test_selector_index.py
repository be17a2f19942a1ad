"""The selectors of current jobs and the pods that they match, as jobs come and go."""

import random

import pytest

from hekla.domain.resources import Resources
from hekla.engine import audit
from hekla.engine.constraints import (
    NO_CONSTRAINTS,
    PodAffinityTerm,
    PodConstraints,
    PodSelector,
    Requirement,
)
from hekla.engine.job_twins import TwinGroups
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, QueueSpec
from hekla.engine.scheduler_cache import SchedulerCache

NODES = (NodeSpec("n", Resources.parse({"cpu": "4", "pods": "9"}), labels={"zone": "a"}),)
REQUEST = Resources.parse({"cpu": "1", "pods": "1"})


def apart(app: str, namespace: str = "lab") -> PodConstraints:
    """Anti-affinity to the pods of an app."""
    selector = PodSelector((Requirement("app", "In", (app,)),), frozenset({namespace}))
    return PodConstraints(pod_anti_affinity=(PodAffinityTerm(selector, "zone"),))


def job(uid: str, app: str = "", constraints: PodConstraints = NO_CONSTRAINTS, namespace: str = "lab") -> PodGroupSpec:
    labels = {"app": app} if app else {}
    pods = tuple(
        PodSpec(f"{uid}/{at}", f"{uid}-w-{at}", "w", REQUEST, labels=labels, constraints=constraints) for at in range(2)
    )
    return PodGroupSpec(uid, uid, "q", namespace=namespace, pods=pods)


def state(*jobs: PodGroupSpec) -> ClusterState:
    return ClusterState(NODES, (QueueSpec("q"),), jobs)


def matches(cache: SchedulerCache, uid: str) -> int:
    (found,) = {len(pod.matching_selectors) for pod in cache.jobs[uid].pods}
    return found


def test_selector_counts_while_a_job_has_it() -> None:
    plain, labelled, foreign = job("plain"), job("labelled", "x"), job("foreign", "x", namespace="other")
    cache = SchedulerCache.of(state(plain, labelled, foreign))
    picky, alike = job("picky", constraints=apart("x")), job("alike", constraints=apart("x"))
    for jobs, expected in (
        ((plain, labelled, foreign, picky), 1),
        ((plain, labelled, foreign, picky, alike), 1),
        ((plain, labelled, foreign, alike), 1),
        ((plain, labelled, foreign), 0),
    ):
        cache.update(state(*jobs))
        assert [matches(cache, uid) for uid in ("plain", "labelled", "foreign")] == [0, expected, 0]
        assert len(cache.selector_index.anti_affinity_terms) == expected
        assert audit.differences(cache) == []


def test_new_selector_concerns_only_jobs_that_it_matches() -> None:
    jobs = [job("labelled", "x"), *(job(f"other-{number}", "y") for number in range(3))]
    cache = SchedulerCache.of(state(*jobs))
    index, picky = cache.selector_index, job("picky", constraints=apart("x"))
    cache.update(state(*jobs, picky))
    groups = {one.uid: one for one in (*jobs, picky)}
    index.remove("picky", picky)
    assert index.refresh(groups) == ["labelled"]
    index.add_all(["picky"], TwinGroups([picky]))
    assert index.refresh(groups) == ["labelled"]
    index.remove("other-0", jobs[1])
    assert index.refresh(groups) == []


@pytest.mark.parametrize("seed", range(5))
def test_cache_equals_a_fresh_one_after_any_history(seed: int) -> None:
    dice = random.Random(seed)
    constraints = [NO_CONSTRAINTS, NO_CONSTRAINTS, apart("x"), apart("y"), apart("x", "other")]
    cache, jobs, number = SchedulerCache(), list[PodGroupSpec](), 0
    for _ in range(40):
        jobs = [one for one in jobs if dice.random() < 0.8]
        for _ in range(dice.randint(0, 3)):
            number += 1
            fields = dice.choice(["", "x", "y"]), dice.choice(constraints), dice.choice(["lab", "other"])
            jobs.append(job(f"j{number}", *fields))
        cache.update(state(*jobs))
        assert audit.differences(cache) == []
