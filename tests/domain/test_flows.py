"""Flow specs and the progress of flows, for any graph of steps and any order of events."""

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
    """Random dependencies by step, which may have cycles."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 7)))]
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in names}


@st.composite
def flows(draw: st.DrawFn) -> FlowSpec:
    """Random flows without cycles, with their steps in any order."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 8)))]
    steps = [
        {"name": name, "depends_on": draw(st.lists(st.sampled_from(names[:position]), max_size=3)) if position else []}
        for position, name in enumerate(names)
    ]
    return spec(*draw(st.permutations(steps)))


@given(graphs())
def test_flow_is_valid_if_and_only_if_it_has_no_cycle(graph: dict[str, list[str]]) -> None:
    document = flow([{"name": name, "depends_on": dependencies} for name, dependencies in graph.items()])
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError:
        ((path, message),) = problems(document).items()
        position, cycle = int(path.split(".")[1]), message.rpartition(": ")[2].rstrip(".").split(" → ")
        assert list(graph)[position] == cycle[0] == cycle[-1]
        assert all(after in graph[before] for before, after in pairwise(cycle))
    else:
        assert FlowSpec.parse(FlowSpec.parse(document).document()) == FlowSpec.parse(document)


@given(flows(), st.data())
def test_steps_start_after_their_dependencies_and_all_start(flow_spec: FlowSpec, data: st.DataObject) -> None:
    jobs: dict[str, StepFacts] = {}
    while (now := evaluate_flow(flow_spec, jobs)).phase is not FlowPhase.SUCCEEDED:
        assert not now.is_over
        assert now == evaluate_flow(flow_spec, dict(reversed(jobs.items()))), "the same facts, the same answer"
        assert not set(now.due) & set(jobs)
        assert set(now.due) | set(now.waits) | set(jobs) == {step.name for step in flow_spec.steps}
        for step in now.due:
            assert all(jobs[other].phase is JobPhase.COMPLETED for other in flow_spec.waits[step])
        jobs |= {step: StepFacts(data.draw(st.sampled_from(WORKING))) for step in now.due}
        busy = [step for step, facts in jobs.items() if facts.phase is not JobPhase.COMPLETED]
        assert busy, "something is always on its way"
        jobs[data.draw(st.sampled_from(busy))] = StepFacts(JobPhase.COMPLETED)
    assert now.is_over
    assert not now.due


@given(flows(), st.data())
def test_no_step_starts_after_a_failure_or_a_stop(flow_spec: FlowSpec, data: st.DataObject) -> None:
    started = data.draw(st.lists(st.sampled_from([step.name for step in flow_spec.steps]), min_size=1, unique=True))
    jobs = {name: StepFacts(data.draw(st.sampled_from(list(JobPhase)))) for name in started}
    stopped = data.draw(st.booleans())
    now = evaluate_flow(flow_spec, jobs, is_stopped=stopped)
    phases = {facts.phase for facts in jobs.values()}
    if phases & {JobPhase.FAILED, JobPhase.TERMINATED} or (stopped and now.phase is not FlowPhase.SUCCEEDED):
        failed = JobPhase.FAILED in phases or not stopped
        assert now.phase is (FlowPhase.FAILED if failed else FlowPhase.TERMINATED)
        assert (now.due, dict(now.waits)) == ((), {})
        assert now.is_over == all(phase.is_final for phase in phases)


def test_aborted_job_holds_the_flow() -> None:
    flow_spec = spec({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    now = evaluate_flow(flow_spec, {"a": StepFacts(JobPhase.ABORTED)})
    assert (now.phase, now.due, now.is_over) == (FlowPhase.RUNNING, (), False)
    assert now.waits == {"b": (StepWait("a", JobPhase.ABORTED),)}


def test_flow_is_pending_until_a_job_runs() -> None:
    flow_spec = spec({"name": "a"}, {"name": "b"})
    assert evaluate_flow(flow_spec, {}).phase is FlowPhase.PENDING
    assert evaluate_flow(flow_spec, {"a": StepFacts(JobPhase.PENDING)}).phase is FlowPhase.PENDING
    assert evaluate_flow(flow_spec, {"a": StepFacts(JobPhase.RUNNING)}).phase is FlowPhase.RUNNING


RUNNING = StepFacts(JobPhase.RUNNING, {"ps": TaskFacts(2, running=1), "worker": TaskFacts(1, running=1)})


def test_state_probe_needs_the_minimum_of_the_task() -> None:
    flow_spec = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": [{"task": "ps", "state": "running"}]})
    assert evaluate_flow(flow_spec, {"a": RUNNING}).waits == {
        "b": (StepWait("a", JobPhase.RUNNING, flow_spec.steps[1].probes[0]),)
    }
    for ps in (TaskFacts(2, running=2), TaskFacts(2, running=1, succeeded=1), TaskFacts(2, succeeded=2)):
        assert evaluate_flow(flow_spec, {"a": replace(RUNNING, tasks={"ps": ps})}).due == ("b",)


def test_probe_without_a_task_needs_all_tasks() -> None:
    flow_spec = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": [{"state": "succeeded"}]})
    one = StepFacts(JobPhase.RUNNING, {"ps": TaskFacts(1, running=1), "worker": TaskFacts(1, succeeded=1)})
    assert not evaluate_flow(flow_spec, {"a": one}).due
    assert evaluate_flow(flow_spec, {"a": replace(one, tasks={"worker": TaskFacts(1, succeeded=1)})}).due == ("b",)


def test_ports_are_probed_after_all_other_conditions() -> None:
    probes = [{"task": "ps", "state": "running"}, {"task": "ps", "port": 80}]
    flow_spec = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": probes})
    ready = replace(RUNNING, tasks={"ps": TaskFacts(1, running=1)})
    port_probe = PortProbe("b", 1, "a")
    assert port_probes(flow_spec, {}) == port_probes(flow_spec, {"a": RUNNING}) == []
    assert port_probes(flow_spec, {"a": ready}) == [port_probe]
    assert not evaluate_flow(flow_spec, {"a": ready}).due
    assert evaluate_flow(flow_spec, {"a": ready}, {port_probe}).due == ("b",)
    assert port_probes(flow_spec, {"a": ready, "b": RUNNING}) == []


def test_completed_job_satisfies_every_probe() -> None:
    flow_spec = spec({"name": "a"}, {"name": "b", "depends_on": ["a"], "probes": [{"port": 80}, {"state": "running"}]})
    assert evaluate_flow(flow_spec, {"a": StepFacts(JobPhase.COMPLETED)}).due == ("b",)


def test_all_problems_are_reported_with_their_path() -> None:
    found = problems(
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
    assert found["steps.0.job"].startswith("The step has both a template and a job")
    assert found["steps.0.depends_on.0"].startswith("Unknown step “c”. Available: a, a, b, long")
    assert found["steps.1.name"] == "Another step has the name “a”."
    assert found["steps.1.probes.0.port"] == "Must be at most 65535, not 70000."
    assert found["steps.2.probes.0"].startswith("A probe needs either a state")
    assert found["steps.2.probes.1.path"].startswith("A path begins with a slash")
    assert found["steps.2.probes.2.state"] == "“runing” is not one of running, succeeded. Did you mean “running”?"
    assert found["steps.3.name"].endswith("Shorten the name of the flow or the step by 4.")
    assert found["steps.3.patch"] == "Must be a mapping of names to values, not a list."
    assert found["retain"].startswith("“maybe” is not one of retain, delete")


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
def test_invalid_flow_is_refused_with_its_path(document: dict[str, Any], path: str, words: str) -> None:
    assert words in problems(document)[path]


def test_job_in_a_step_needs_no_name() -> None:
    (step,) = spec({"name": "a", "job": JOB}).steps
    assert step.job is not None
    assert (step.job.name, step.template_name) == ("a", "")


@pytest.mark.parametrize("bad", ["a\r\nX: y", "a\0", "ä"])
def test_probe_headers_are_single_lines(bad: str) -> None:
    waiting = {"name": "b", "depends_on": ["a"], "probes": [{"port": 1, "path": "/", "headers": {"X-A": bad}}]}
    assert "steps.1.probes.0.headers.X-A" in problems(flow([{"name": "a"}, waiting]))
    wrong_name = {**waiting, "probes": [{"port": 1, "path": "/", "headers": {bad: "x"}}]}
    assert f"steps.1.probes.0.headers.{bad}" in problems(flow([{"name": "a"}, wrong_name]))
