"""Flows as they are asked for, and how they go on, for any graph of steps and any order of events."""

from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.errors import Invalid
from hekla.domain.flow_progress import PortProbe, StepFacts, StepWait, TaskFacts, evaluate_flow, port_probes
from hekla.domain.flows import MAX_STEPS, FlowSpec
from hekla.domain.phases import FlowPhase, JobPhase

JOB = {"tasks": [{"name": "main", "command": ["true"]}]}
WORKING = [JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING]


def flow(steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": "flow", "steps": steps, **more}


def spec(*steps: dict[str, Any]) -> FlowSpec:
    return FlowSpec.parse(flow(list(steps)))


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        FlowSpec.parse(document)
    return {problem.path: problem.message for problem in caught.value.problems}


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Steps and what they wait for, in any way, also in circles."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 7)))]
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in names}


@st.composite
def flows(draw: st.DrawFn) -> FlowSpec:
    """A flow in which every step waits for some of those before it, told in any order."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 8)))]
    steps = [
        {"name": name, "depends_on": draw(st.lists(st.sampled_from(names[:place]), max_size=3)) if place else []}
        for place, name in enumerate(names)
    ]
    return spec(*draw(st.permutations(steps)))


@given(graphs())
def test_a_flow_is_taken_exactly_if_it_has_no_circle(graph: dict[str, list[str]]) -> None:
    document = flow([{"name": name, "depends_on": others} for name, others in graph.items()])
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError:
        ((path, message),) = problems(document).items()
        place, circle = int(path.split(".")[1]), message.rpartition(": ")[2].rstrip(".").split(" → ")
        assert list(graph)[place] == circle[0] == circle[-1]
        assert all(after in graph[before] for before, after in pairwise(circle))
    else:
        assert FlowSpec.parse(FlowSpec.parse(document).document()) == FlowSpec.parse(document)


@given(flows(), st.data())
def test_steps_begin_when_what_they_wait_for_has_completed_and_all_come_to_their_turn(
    asked: FlowSpec, data: st.DataObject
) -> None:
    jobs: dict[str, StepFacts] = {}
    while (now := evaluate_flow(asked, jobs)).phase is not FlowPhase.SUCCEEDED:
        assert not now.is_over
        assert now == evaluate_flow(asked, dict(reversed(jobs.items()))), "the same facts, the same answer"
        assert not set(now.due) & set(jobs)
        assert set(now.due) | set(now.waits) | set(jobs) == {step.name for step in asked.steps}
        for step in now.due:
            assert all(jobs[other].phase is JobPhase.COMPLETED for other in asked.waits[step])
        jobs |= {step: StepFacts(data.draw(st.sampled_from(WORKING))) for step in now.due}
        busy = [step for step, facts in jobs.items() if facts.phase is not JobPhase.COMPLETED]
        assert busy, "something is always on its way"
        jobs[data.draw(st.sampled_from(busy))] = StepFacts(JobPhase.COMPLETED)
    assert now.is_over
    assert not now.due


@given(flows(), st.data())
def test_nothing_begins_any_more_after_a_failure_or_a_stop(asked: FlowSpec, data: st.DataObject) -> None:
    begun = data.draw(st.lists(st.sampled_from([step.name for step in asked.steps]), min_size=1, unique=True))
    jobs = {name: StepFacts(data.draw(st.sampled_from(list(JobPhase)))) for name in begun}
    stopped = data.draw(st.booleans())
    now = evaluate_flow(asked, jobs, is_stopped=stopped)
    phases = {facts.phase for facts in jobs.values()}
    if phases & {JobPhase.FAILED, JobPhase.TERMINATED} or (stopped and now.phase is not FlowPhase.SUCCEEDED):
        failed = JobPhase.FAILED in phases or not stopped
        assert now.phase is (FlowPhase.FAILED if failed else FlowPhase.TERMINATED)
        assert (now.due, dict(now.waits)) == ((), {})
        assert now.is_over == all(phase.is_final for phase in phases)


def test_an_aborted_job_holds_the_flow_until_somebody_resumes_it() -> None:
    asked = spec({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    now = evaluate_flow(asked, {"a": StepFacts(JobPhase.ABORTED)})
    assert (now.phase, now.due, now.is_over) == (FlowPhase.RUNNING, (), False)
    assert now.waits == {"b": (StepWait("a", JobPhase.ABORTED),)}


def test_it_is_pending_until_a_job_has_begun() -> None:
    asked = spec({"name": "a"}, {"name": "b"})
    assert evaluate_flow(asked, {}).phase is FlowPhase.PENDING
    assert evaluate_flow(asked, {"a": StepFacts(JobPhase.PENDING)}).phase is FlowPhase.PENDING
    assert evaluate_flow(asked, {"a": StepFacts(JobPhase.RUNNING)}).phase is FlowPhase.RUNNING


RUNNING = StepFacts(JobPhase.RUNNING, {"ps": TaskFacts(2, running=1), "worker": TaskFacts(1, running=1)})


def test_a_probe_of_a_state_asks_for_the_tasks_minimum() -> None:
    asked = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": [{"task": "ps", "state": "running"}]})
    assert evaluate_flow(asked, {"a": RUNNING}).waits == {
        "b": (StepWait("a", JobPhase.RUNNING, asked.steps[1].probes[0]),)
    }
    for ps in (TaskFacts(2, running=2), TaskFacts(2, running=1, succeeded=1), TaskFacts(2, succeeded=2)):
        assert evaluate_flow(asked, {"a": replace(RUNNING, tasks={"ps": ps})}).due == ("b",)


def test_a_probe_without_a_task_asks_all_tasks() -> None:
    asked = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": [{"state": "succeeded"}]})
    one = StepFacts(JobPhase.RUNNING, {"ps": TaskFacts(1, running=1), "worker": TaskFacts(1, succeeded=1)})
    assert not evaluate_flow(asked, {"a": one}).due
    assert evaluate_flow(asked, {"a": replace(one, tasks={"worker": TaskFacts(1, succeeded=1)})}).due == ("b",)


def test_ports_are_asked_once_nothing_else_is_missing() -> None:
    probes = [{"task": "ps", "state": "running"}, {"task": "ps", "port": 80}]
    asked = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": probes})
    ready = replace(RUNNING, tasks={"ps": TaskFacts(1, running=1)})
    question = PortProbe("b", 1, "a")
    assert port_probes(asked, {}) == port_probes(asked, {"a": RUNNING}) == []
    assert port_probes(asked, {"a": ready}) == [question]
    assert not evaluate_flow(asked, {"a": ready}).due
    assert evaluate_flow(asked, {"a": ready}, {question}).due == ("b",)
    assert port_probes(asked, {"a": ready, "b": RUNNING}) == []


def test_a_completed_job_fulfils_every_probe() -> None:
    asked = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": [{"port": 80}, {"state": "running"}]})
    assert evaluate_flow(asked, {"a": StepFacts(JobPhase.COMPLETED)}).due == ("b",)


def test_all_that_is_wrong_is_told_at_once_with_its_place() -> None:
    told = problems(
        flow(
            [
                {"name": "a", "depends_on": ["c"], "template": "x", "job": JOB},
                {"name": "a", "probes": [{"port": 70_000}]},
                {"name": "b", "depends_on": ["a"], "probes": [{}, {"port": 1, "path": "x"}, {"state": "runing"}]},
                {"name": "long" * 13, "patch": []},
            ],
            retain="maybe",
        )
    )
    assert told["steps.0.job"].startswith("The step has both a template and a job")
    assert told["steps.0.depends_on.0"].startswith("Unknown step “c”. Available: a, a, b, long")
    assert told["steps.1.name"] == "Another step has the name “a”."
    assert told["steps.1.probes.0.port"] == "Must be at most 65535, not 70000."
    assert told["steps.2.probes.0"].startswith("A probe needs either a state")
    assert told["steps.2.probes.1.path"].startswith("A path begins with a slash")
    assert told["steps.2.probes.2.state"] == "“runing” is not one of running, succeeded. Did you mean “running”?"
    assert told["steps.3.name"].endswith("Shorten the name of the flow or the step by 4.")
    assert told["steps.3.patch"] == "Must be a mapping of names to values, not a list."
    assert told["retain"].startswith("“maybe” is not one of retain, delete")


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        (flow([]), "steps", "At least one is required."),
        (flow([{"name": f"s{n}"} for n in range(MAX_STEPS + 1)]), "steps", "The limit is 100"),
        (flow([{"name": "a", "probes": [{"port": 1}]}]), "steps.0.probes", "This step has none"),
        (flow([{"name": "a", "patch": {"x": "y" * 70_000}}]), "steps.0.patch", "64 KiB"),
        (flow([{"name": "a", "job": {"tasks": []}}]), "steps.0.job.tasks", "At least one"),
        (flow([{"name": "a"}], name="No Name"), "name", "not a valid name"),
    ],
)  # fmt: skip
def test_it_is_refused_at_the_place(document: dict[str, Any], path: str, words: str) -> None:
    assert words in problems(document)[path]


def test_a_job_in_a_step_needs_no_name() -> None:
    (step,) = spec({"name": "a", "job": JOB}).steps
    assert step.job is not None
    assert (step.job.name, step.template_name) == ("a", "")


@pytest.mark.parametrize("bad", ["a\r\nX: y", "a\0", "ä"])
def test_what_goes_into_a_request_is_one_line(bad: str) -> None:
    waiting = {"name": "b", "depends_on": ["a"], "probes": [{"port": 1, "path": "/", "headers": {"X-A": bad}}]}
    assert "steps.1.probes.0.headers.X-A" in problems(flow([{"name": "a"}, waiting]))
    wrong_name = {**waiting, "probes": [{"port": 1, "path": "/", "headers": {bad: "x"}}]}
    assert f"steps.1.probes.0.headers.{bad}" in problems(flow([{"name": "a"}, wrong_name]))
