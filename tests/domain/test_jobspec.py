"""Validation of job specs: accepted jobs, and the problems of invalid ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.specs import SPECS

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import MAX_FILE_BYTES, JobSpec
from hekla.domain.resources import Resources

TASK = {"name": "worker", "command": ["python", "train.py"]}


def job(**fields):
    return {"name": "digits", "tasks": [TASK], **fields}


def with_task(**fields):
    return job(tasks=[{**TASK, **fields}])


def waiting(name, *dependencies):
    return {**TASK, "name": name} | ({"depends_on": {"tasks": list(dependencies)}} if dependencies else {})


def problems_of(document):
    with pytest.raises(Invalid) as raised:
        JobSpec.parse(document)
    return {problem.path: problem.message for problem in raised.value.problems}


def test_minimal_job_has_defaults():
    spec = JobSpec.parse(job())
    assert (spec.queue, spec.kind, spec.max_retry, spec.gang_minimum) == ("default", "training", 3, 1)
    assert spec.document() == job()


@given(SPECS)
def test_job_survives_serialization(spec):
    assert JobSpec.parse(json.loads(json.dumps(spec.document()))) == spec


@pytest.mark.parametrize(
    ("document", "path", "sentence"),
    [
        (job(name="Digits"), "name", "“Digits” is not a valid name"),
        (job(name="x" * 54), "name", "54 characters. The limit is 53"),
        (job(name=""), "name", "Must not be empty"),
        (job(name=7), "name", "Must be a string, not 7. Put it in quotes"),
        (job(tasks=[]), "tasks", "At least one is required"),
        (job(tasks="worker"), "tasks", "Must be a list, not “worker”"),
        (job(tasks=[3]), "tasks.0", "Must be a mapping"),
        (job(tasks=[TASK] * 51), "tasks", "51 entries. The limit is 50"),
        (job(tasks=[TASK, TASK]), "tasks.1.name", "Another task has the name “worker”"),
        (job(tasks=[{**TASK, "replicas": 0}]), "tasks", "nothing to run"),
        (job(tasks=[{**TASK, "replicas": 6_000}, {**TASK, "name": "b", "replicas": 6_000}]), "tasks", "12,000"),
        (job(name="j" * 53, tasks=[{**TASK, "name": "w" * 9}]), "tasks.0.name", "Shorten the name"),
        (job(quue="a"), "quue", "Did you mean “queue”?"),
        (job(zzz=1), "zzz", "The fields are name,"),
        (job(min_available=2), "min_available", "1 replicas in total, so 2 can never be reached"),
        (job(min_success=2), "min_success", "can never be reached"),
        (job(min_available=True), "min_available", "an integer, not true"),
        (job(max_retry=0), "max_retry", "at least 1, not 0"),
        (job(priority=1.5), "priority", "an integer, not 1.5"),
        (job(active_deadline_seconds=0), "active_deadline_seconds", "at least 1"),
        (job(ttl_seconds_after_finished=-1), "ttl_seconds_after_finished", "at least 0"),
        (job(plugins={"nope": []}), "plugins.nope", "Unknown plugin “nope”"),
        (job(files={"/etc/passwd": ""}), "files./etc/passwd", "relative path"),
        (job(files={"../x": ""}), "files.../x", "must stay in the working folder"),
        (job(files={"a//b": ""}), "files.a//b", "no double"),
        (job(files={"a": "", "a/b": ""}), "files.a/b", "inside another file"),
        (job(files={"a": "x" * (MAX_FILE_BYTES + 1)}), "files", "256 KiB"),
        (job(files={str(n): "" for n in range(33)}), "files", "The limit is 32"),
        (job(files={"a": "\ud800"}), "files.a", "broken characters"),
        (with_task(replicas="two"), "tasks.0.replicas", "an integer, not “two”"),
        (with_task(replicas="2"), "tasks.0.replicas", "an integer, not “2”"),
        (with_task(replicas=-1), "tasks.0.replicas", "at least 0, not -1"),
        (with_task(replicas=10**9), "tasks.0.replicas", "at most 10000"),
        (with_task(replica=2), "tasks.0.replica", "Did you mean “replicas”?"),
        (with_task(min_available=2), "tasks.0.min_available", "The task has 1 replicas"),
        (with_task(command="python train.py"), "tasks.0.command", 'for example ["python", "train.py"]'),
        (with_task(command=[]), "tasks.0.command", "Only a task with an image can run without"),
        (with_task(args=["--fast"]), "tasks.0.args", "Add them to the end of the command"),
        (with_task(command=[" "]), "tasks.0.command.0", "program to start"),
        (with_task(command=["a", "b\0"]), "tasks.0.command.1", "NUL"),
        (with_task(command=None), "tasks.0.command", "Must be a list, not nothing"),
        (with_task(resources={"cpu": "lots"}), "tasks.0.resources.cpu", "“lots” is not an amount"),
        (with_task(resources={"cpu": -1}), "tasks.0.resources.cpu", "“-1” is not an amount"),
        (with_task(resources={"pods": 1}), "tasks.0.resources.pods", "is not a resource"),
        (with_task(resources=["cpu"]), "tasks.0.resources", "a mapping of names to values, not a list"),
        (with_task(env={"1A": "x"}), "tasks.0.env.1A", "variable name"),
        (with_task(env={"A": 1.10}), "tasks.0.env.A", "Put it in quotes"),
        (with_task(env={"A": "x" * 200_000}), "tasks.0.env", "128 KiB"),
        (with_task(environment="My Env"), "tasks.0.environment", "is not a valid name"),
        (with_task(working_dir="a/../../b"), "tasks.0.working_dir", "“..”"),
        (with_task(replicas=4, partition_size=3), "tasks.0.partition_size", "not a multiple of the partition size 3"),
        (with_task(max_retry=0), "tasks.0.max_retry", "-1 for no limit"),
        (with_task(depends_on={"tasks": []}), "tasks.0.depends_on.tasks", "At least one is required"),
        (with_task(depends_on={"tasks": ["ps"], "iteration": "some"}), "tasks.0.depends_on.iteration", "all, any"),
        (with_task(depends_on={"tasks": ["wrker"]}), "tasks.0.depends_on.tasks.0", "Did you mean “worker”?"),
        (with_task(depends_on={"tasks": ["ps"]}), "tasks.0.depends_on.tasks.0", "Unknown task “ps”. Available:"),
        (with_task(depends_on={"tasks": ["worker"]}), "tasks.0.depends_on", "between tasks: worker → worker."),
        (
            job(tasks=[waiting("a"), waiting("b", "a", "d"), waiting("c", "b"), waiting("d", "c")]),
            "tasks.1.depends_on",
            "between tasks: b → d → c → b.",
        ),
        (with_task(node_selector={"-": "x"}), "tasks.0.node_selector.-", "node label"),
        (job(policies=[{"events": ["PodFaild"], "action": "AbortJob"}]), "policies.0.events.0", "mean “PodFailed”?"),
        (job(policies=[{"events": ["PodRunning"], "action": "AbortJob"}]), "policies.0.events.0", "is not one of"),
        (job(policies=[{"events": ["*"], "action": "SyncJob"}]), "policies.0.action", "is not one of"),
        (
            job(policies=[{"events": ["Unknown"], "action": "AbortJob", "timeout_seconds": 5}]),
            "policies.0",
            "acts immediately",
        ),
        (job(policies=[{"action": "AbortJob"}]), "policies.0", "A policy needs events or an exit code."),
        (job(policies=[{"events": ["*"], "exit_code": 1, "action": "AbortJob"}]), "policies.0", "not both"),
        (job(policies=[{"exit_code": 0, "action": "AbortJob"}]), "policies.0", "means success"),
        (
            job(policies=[{"events": ["*"], "action": "AbortJob"}, {"events": ["Unknown"], "action": "AbortJob"}]),
            "policies.1",
            "only event in the list",
        ),
        (
            job(policies=[{"exit_code": 1, "action": "AbortJob"}, {"exit_code": 1, "action": "RestartJob"}]),
            "policies.1",
            "earlier policy",
        ),
    ],
)
def test_problem_has_its_path_and_a_message(document, path, sentence):
    problems = problems_of(document)
    assert list(problems) == [path]
    assert sentence in problems[path]


def test_all_problems_are_reported_at_once():
    document = {
        "name": "Digits",
        "min_available": 9,
        "plugins": {"tensorflow": ["--port=0"]},
        "tasks": [
            {"name": "ps", "command": "run", "resources": {"cpu": "much", "memory": "more"}},
            {"name": "worker", "replicas": 2},
        ],
    }
    assert sorted(problems_of(document)) == [
        "min_available",
        "name",
        "plugins.tensorflow.0",
        "tasks.0.command",
        "tasks.0.resources.cpu",
        "tasks.0.resources.memory",
        "tasks.1.command",
    ]


@pytest.mark.parametrize("nonsense", [None, 3, "job", [], [{"name": "x"}], {}, {"name": None, "tasks": None}])
def test_other_documents_are_refused(nonsense):
    assert problems_of(nonsense)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(JobSpec.model_fields)


@given(SPECS, st.sampled_from(FIELDS), JSON)
def test_any_value_of_a_field_is_accepted_or_a_problem_there(spec, field, value):
    try:
        JobSpec.parse({**spec.document(), field: value})
        problems = ()
    except Invalid as error:
        problems = error.problems
    about = {problem.path.split(".")[0] for problem in problems}
    assert about <= {field, "min_available", "min_success", "plugins", "tasks"}
    assert all(problem.message.endswith((".", "?")) for problem in problems)


@pytest.mark.parametrize(
    ("tasks", "minimum", "want"),
    [
        ([(2, None, "1"), (3, None, "2")], None, "8"),
        ([(2, 1, "1"), (3, 1, "2")], None, "3"),
        ([(2, 1, "1"), (3, 1, "2")], 3, "4"),
        ([(2, 1, "1"), (3, 1, "2")], 4, "6"),
        ([(2, None, "1"), (3, None, "2")], 1, "1"),
        ([(2, None, "1"), (3, None, "2")], 4, "6"),
    ],
)
def test_minimum_resources(tasks, minimum, want):
    """The minimum of each task, then more of earlier tasks; only earlier tasks if the job's minimum is lower."""
    document = job(
        tasks=[
            {"name": f"t{number}", "command": ["x"], "replicas": replicas, "resources": {"cpu": cpu}}
            | ({"min_available": least} if least is not None else {})
            for number, (replicas, least, cpu) in enumerate(tasks)
        ]
    )
    spec = JobSpec.parse(document | ({"min_available": minimum} if minimum else {}))
    assert spec.minimum_resources() == Resources.parse({"cpu": want})


@given(SPECS)
def test_minimum_resources_fit_in_the_job(spec):
    everything = sum((task.request * task.replicas for task in spec.tasks), Resources())
    assert spec.minimum_resources().fits_in(everything)
    assert spec.gang_minimum <= spec.replicas


def test_jobs_are_immutable():
    spec = JobSpec.parse(job())
    with pytest.raises(ValueError, match="frozen"):
        spec.queue = "other"


def test_task_is_found_by_its_name():
    spec = JobSpec.parse(job())
    assert spec.task("worker").command == ("python", "train.py")
    with pytest.raises(KeyError):
        spec.task("ps")


def with_ports(*tasks: dict[str, int]) -> JobSpec:
    made = [{"name": f"task-{number}", "command": ["x"], "ports": ports} for number, ports in enumerate(tasks)]
    return JobSpec.parse({"name": "one", "tasks": made})


def test_task_may_have_named_ports() -> None:
    assert with_ports({"board": 6006, "x": 1}, {"api-2": 65535}).tasks[1].ports == {"api-2": 65535}


@pytest.mark.parametrize("name", ["", "Board", "-board", "board-", "a.b", "a" * 16])
def test_invalid_port_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        with_ports({name: 6006})
    assert [problem.path for problem in refused.value.problems] == [f"tasks.0.ports.{name}".rstrip(".")]


@pytest.mark.parametrize("number", [0, 65536, "80"])
def test_invalid_port_number_is_refused(number: object) -> None:
    with pytest.raises(Invalid):
        with_ports({"board": number})


def test_port_names_are_unique_in_a_job() -> None:
    with pytest.raises(Invalid) as refused:
        with_ports({"board": 1}, {"board": 2})
    assert [problem.path for problem in refused.value.problems] == ["tasks.1.ports.board"]


def test_task_with_an_image_needs_no_command():
    spec = JobSpec.parse({"name": "a", "tasks": [{"name": "a", "image": "server:1", "args": ["--port", "80"]}]})
    assert (spec.tasks[0].command, spec.tasks[0].args) == ((), ("--port", "80"))
    assert JobSpec.parse(spec.document()) == spec
