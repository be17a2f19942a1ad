"""Validation: an invalid object is refused by name and does not affect the others."""

from dataclasses import replace
from math import inf, nan

import pytest
from tests.engine.builders import POLICY, bound, decide, job, node, running, state

from hekla.domain.errors import Invalid
from hekla.domain.resources import Resources
from hekla.engine import cycle, validation
from hekla.engine.model import QueueSpec

GOOD = job("good")


def job_requesting(name: str, cpu: float) -> object:
    made = job(name)
    return replace(made, pods=tuple(replace(task, request=Resources({"cpu": cpu})) for task in made.pods))


@pytest.mark.parametrize(
    ("wrong", "path", "word"),
    [
        (job_requesting("bad", -1000), "jobs.bad.tasks.bad-w-0.request.cpu", "negative"),
        (job_requesting("bad", nan), "jobs.bad.tasks.bad-w-0.request.cpu", "Not a finite number"),
        (job_requesting("bad", inf), "jobs.bad.tasks.bad-w-0.request.cpu", "Not a finite number"),
        (job_requesting("bad", 1e30), "jobs.bad.tasks.bad-w-0.request.cpu", "More than any node"),
        (replace(job("bad"), min_available=-1), "jobs.bad.min_available", "must not be negative"),
        (replace(job("bad"), min_task_member={"w": -2}), "jobs.bad.min_task_member", "must not be negative"),
        (replace(job("bad"), min_resources=Resources({"cpu": -1})), "jobs.bad.min_resources.cpu", "negative"),
        (job("bad", queue="mad"), "jobs.bad.queue", "is invalid"),
    ],
)
def test_invalid_job_is_refused_with_its_problem(wrong: object, path: str, word: str) -> None:
    queues = [QueueSpec("q"), QueueSpec("mad", weight=-1)]
    decisions = decide([node("a")], [wrong, GOOD], queues)
    assert bound(decisions) == {"good": 1}
    (problem,) = decisions.refused["bad"]
    assert problem.path == path
    assert word in problem.message
    assert decisions.reasons["bad"][0].code == "not_valid"


def test_jobs_with_the_same_uid_are_both_refused() -> None:
    twin = replace(job("twin"), name="other")
    decisions = decide([node("a")], [job("twin"), twin, GOOD])
    assert bound(decisions) == {"good": 1}
    assert "twin" in decisions.refused


def test_running_pods_of_a_refused_job_keep_their_resources() -> None:
    bad = replace(running("bad", 3, "a"), min_available=-1)
    assert bound(decide([node("a", "4")], [bad, job("two", 2)])) == {}
    assert bound(decide([node("a", "4")], [bad, job("one", 1)])) == {"one": 1}


def test_node_with_an_invalid_size_gets_no_pods() -> None:
    broken = replace(node("a"), allocatable=Resources({"cpu": inf, "memory": -5, "pods": 110}))
    assert {bind.node for bind in decide([broken, node("b")], [GOOD]).binds} == {"b"}


def test_valid_state_is_accepted() -> None:
    whole = state([node("a")], [GOOD])
    validation.validate(whole)
    assert not cycle(whole, POLICY, 0.0).refused


@pytest.mark.parametrize(
    ("wrong", "path", "word"),
    [
        (replace(job("bad"), min_available=2), "jobs.bad.min_available", "needs 2 pods to start and has 1"),
        (replace(job("bad"), min_task_member={"ps": 1}), "jobs.bad.min_task_member.ps", "needs 1 pods of task ps"),
        (job("bad", queue="gone"), "jobs.bad.queue", "Unknown queue gone"),
        (job_requesting("bad", -1), "jobs.bad.tasks.bad-w-0.request.cpu", "negative"),
    ],
)
def test_validation_of_a_state_reports_every_problem(wrong: object, path: str, word: str) -> None:
    with pytest.raises(Invalid) as caught:
        validation.validate(state([node("a")], [wrong, GOOD]))
    assert [p for p in caught.value.problems if p.path == path and word in p.message], caught.value.problems


def test_duplicate_names_are_reported() -> None:
    with pytest.raises(Invalid) as caught:
        validation.validate(state([node("a"), node("a")], [], [QueueSpec("q"), QueueSpec("q")]))
    assert [problem.path for problem in caught.value.problems] == ["nodes.a", "queues.q"]
