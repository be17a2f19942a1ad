"""Round trips from a job to a manifest of each kind: supported fields survive, and others are reported."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.jobconfigs import VERSION_1, VERSION_2, spec_of
from tests.domain.placements import PLACEMENT, RUNTIME_SETTINGS
from tests.domain.specs import SPECS, with_own_ports, with_volumes
from tests.support.examples import examples

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec

FORM = {form.word: form for form in formats.WRITABLE}
RESTARTS = {"events": ["PodFailed"], "action": "RestartPod"}
ENDS = {"events": ["PodFailed"], "action": "TerminateJob"}
SIGNALS = [{"exit_code": code, "action": "RestartPod"} for code in (130, 137, 138, 143)]
LEADS = {"events": ["TaskCompleted"], "action": "CompleteJob"}

LEADERS = ("master", "chief", "launcher")
SUPPORTED_FIELDS = (
    "name",
    "description",
    "kind",
    "queue",
    "priority",
    "priority_class",
    "active_deadline_seconds",
    "ttl_seconds_after_finished",
    "keep_failed_seconds",
    "idle_after_seconds",
    "files",
)
SUPPORTED_TASK_FIELDS = (
    "replicas", "command", "resources", "env", "environment", "image", "working_dir", "node_selector", "grace_seconds",
    "volume_mounts", "ports", "autoscaling", *PLACEMENT, *RUNTIME_SETTINGS,
)  # fmt: skip


def supported_job(spec, tasks, **more):
    """The job with tasks of other names, and only fields that kinds support. `tasks`: (name, policies) of each."""
    document = spec.document()
    bodies = [{key: task[key] for key in SUPPORTED_TASK_FIELDS if key in task} for task in document["tasks"]]
    named = [
        {**bodies[position % len(bodies)], "name": name, "policies": policies}
        | ({"replicas": 1} if name in LEADERS else {})
        for position, (name, policies) in enumerate(tasks)
    ]
    head = {key: document[key] for key in SUPPORTED_FIELDS if key in document}
    return JobSpec.parse(with_volumes(head | {"tasks": list(with_own_ports(named))}) | more)


@st.composite
def role_jobs(draw, plugin, names, leaders, least=1):
    """Jobs that Kubeflow's kinds support."""
    spec = draw(SPECS)
    chosen = draw(st.lists(st.sampled_from(names), min_size=least, unique=True))
    leader = next((name for name in leaders if name in chosen), None) if len(chosen) > 1 else None
    restarts = draw(st.sampled_from([[RESTARTS], [ENDS], [*SIGNALS, ENDS]]))
    tasks = [(name, [*restarts, *([LEADS] if name == leader else [])]) for name in chosen]
    job = supported_job(spec, tasks, plugins=plugin(chosen), max_retry=draw(st.integers(1, 9)), min_available=1)
    is_single = job.replicas == 1
    return job.model_copy(update={"tasks": tuple(_without_terminate(task) for task in job.tasks)}) if is_single else job


def _without_terminate(task):
    """The task without policies that terminate the job: a job of a single pod needs none."""
    return task.model_copy(
        update={"policies": tuple(policy for policy in task.policies if policy.action != "TerminateJob")}
    )


@st.composite
def plain_jobs(draw):
    """Jobs that a Kubernetes Job supports."""
    limit = draw(st.sampled_from([0, 4]))
    codes = [_code(code, limit) for code in draw(st.lists(st.integers(1, 5), max_size=2, unique=True))]
    lost = draw(st.sampled_from([[], [{"events": ["PodEvicted"], "action": "RestartPod"}]]))
    spec = draw(SPECS)
    is_single = spec.tasks[0].replicas == 1
    job = supported_job(
        spec,
        [("main", [*codes, *lost, *([RESTARTS] if limit else [] if is_single else [ENDS])])],
        plugins=draw(st.sampled_from([{}, {"indexed": []}])),
        **({"max_retry": limit} if limit else {}),
    )
    gang = draw(st.sampled_from([None, 1]))
    return job.model_copy(update={} if is_single or gang is None else {"min_available": 1, "min_success": job.replicas})


def _code(code, limit):
    return {"exit_code": code, "action": "RestartPod" if limit and code % 2 else "TerminateJob"}


@st.composite
def train_jobs(draw):
    """Jobs that a TrainJob supports: only the fields of its trainer."""
    spec = draw(SPECS)
    torchrun = ["--master=node", f"--nnodes={spec.tasks[0].replicas}", "--nproc-per-node=4"]
    plugins = draw(st.sampled_from([{"pytorch": torchrun}, {"jax": ["--worker=node"]}]))
    job = supported_job(
        spec, [("node", [RESTARTS])], plugins=plugins, max_retry=6, ttl_seconds_after_finished=None, files={}
    )
    lost = (
        "working_dir",
        "autoscaling",
        "node_selector",
        "grace_seconds",
        "volume_mounts",
        "ports",
        *PLACEMENT,
        *RUNTIME_SETTINGS,
    )
    document = {name: value for name, value in job.document().items() if name != "volumes"}
    task = {name: value for name, value in document["tasks"][0].items() if name not in lost}
    return JobSpec.parse({**document, "tasks": [task]})


def mpi(_chosen):
    return {"mpi": ["--master=launcher", "--slots=2"]}


def paddle(chosen):
    return {"paddle": [] if "worker" in chosen else ["--worker=master"]}


def xgboost(chosen):
    return {"xgboost": [] if "master" in chosen else ["--master=worker"]}


def torch(chosen):
    return {"pytorch": [] if "master" in chosen else ["--master=worker"]}


def tensorflow(chosen):
    return {"tensorflow": ["--chief=master"] if "master" in chosen and "chief" not in chosen else []}


NAMES = {
    "pytorchjob": ["worker", "master"],
    "tfjob": ["ps", "worker", "chief", "master", "evaluator"],
    "job": ["main"],
    "mpijob": ["launcher", "worker"],
    "mpijob-v1": ["launcher", "worker"],
    "paddlejob": ["worker", "master"],
    "xgboostjob": ["worker", "master"],
    "jaxjob": ["worker"],
    "trainjob": ["node"],
}
SUPPORTED_JOBS = {
    "volcano": SPECS,
    "pytorchjob": role_jobs(torch, NAMES["pytorchjob"], ["master"]),
    "tfjob": role_jobs(tensorflow, NAMES["tfjob"], ["chief", "master", "worker"]),
    "job": plain_jobs(),
    "mpijob": role_jobs(mpi, NAMES["mpijob"], ["launcher"], least=2),
    "mpijob-v1": role_jobs(mpi, NAMES["mpijob"], ["launcher"], least=2),
    "paddlejob": role_jobs(paddle, ["worker", "master"], ["master"]),
    "xgboostjob": role_jobs(xgboost, ["worker", "master"], ["master"]),
    "jaxjob": role_jobs(lambda _: {"jax": []}, ["worker"], []),
    "trainjob": train_jobs(),
    "openpai": VERSION_2.map(spec_of),
    "openpai-v1": VERSION_1.map(spec_of),
}


@pytest.mark.parametrize("word", FORM)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_supported_jobs_survive_a_round_trip(word, data):
    spec = data.draw(SUPPORTED_JOBS[word])
    written = formats.write(spec, FORM[word])
    loaded = formats.load(written.text)
    assert (written.notes, formats.losses(spec, FORM[word]), loaded.spec) == ((), (), spec)


@settings(max_examples=examples(60), deadline=None)
@given(spec=SPECS, word=st.sampled_from(sorted(FORM)))
def test_losses_are_the_notes_of_the_written_manifest(spec, word):
    assert _outcome(lambda: formats.losses(spec, FORM[word])) == _outcome(lambda: formats.write(spec, FORM[word]).notes)


def _outcome(find):
    try:
        return find()
    except Invalid as error:
        return error.problems


def test_single_pod_with_retries_survives_a_round_trip():
    role = {"instances": 1, "commands": ["true"], "taskRetryCount": 1, "dockerImage": "image"}
    role["resourcePerInstance"] = {"cpu": 1, "memoryMB": 64, "gpu": 0}
    image = {"type": "dockerimage", "name": "image", "uri": "python:3.12"}
    config = {"protocolVersion": 2, "name": "a", "type": "job", "prerequisites": [image], "taskRoles": {"one": role}}
    spec = spec_of(config | {"extras": {"gangAllocation": False}})
    written = formats.write(spec, FORM["openpai"])
    assert (written.notes, formats.load(written.text).spec) == ((), spec)


@pytest.mark.parametrize("word", ["volcano", "pytorchjob", "tfjob", "job", "trainjob"])
@pytest.mark.parametrize("arguments", [[], ["--port", "80"]])
def test_command_of_an_image_survives_a_round_trip(word, arguments):
    task = {"name": NAMES.get(word, ["a"])[0], "image": "server:1", "args": arguments}
    loaded = formats.load(formats.write(JobSpec.parse({"name": "a", "tasks": [task]}), FORM[word]).text).spec
    assert (loaded.tasks[0].command, loaded.tasks[0].args) == ((), tuple(arguments))


def test_jobconfig_needs_commands():
    spec = JobSpec.parse({"name": "a", "tasks": [{"name": "a", "image": "server:1"}]})
    with pytest.raises(Invalid, match="A JobConfig needs commands"):
        formats.write(spec, FORM["openpai"])


def renamed(spec, names):
    """The job with task names that a kind supports."""
    tasks = [
        task.model_copy(update={"name": name} | ({"replicas": 1, "min_available": None} if name in LEADERS else {}))
        for task, name in zip(spec.tasks, names, strict=False)
    ]
    return spec.model_copy(update={"tasks": tuple(tasks) or spec.tasks, "min_available": None, "min_success": None})


@pytest.mark.parametrize("word", FORM)
@settings(max_examples=examples(60), deadline=None)
@given(spec=SPECS)
def test_second_round_trip_loses_nothing(word, spec):
    written = formats.write(renamed(spec, NAMES.get(word, [])), FORM[word])
    once = formats.load(written.text).spec
    again = formats.write(once, FORM[word])
    assert (again.notes, formats.load(again.text).spec) == ((), once)


def a_job(*names, **fields):
    tasks = [{"name": name, "replicas": 1 if name == "boss" else 2, "command": ["run"]} for name in names]
    return JobSpec.parse({"name": "a", "tasks": tasks} | fields)


AFTER_THREE = {"exit_code": 3, "action": "RestartJob", "timeout_seconds": 5}


@pytest.mark.parametrize(
    ("word", "spec", "notes"),
    [
        (
            "pytorchjob",
            a_job("boss", "hand", plugins={"pytorch": ["--master=boss", "--worker=hand"]}),
            [
                "tasks.0.name: a PyTorchJob does not support “boss”. It uses “master”.",
                "tasks.0.policies: a PyTorchJob adds this (PodFailed → TerminateJob; TaskCompleted → CompleteJob).",
                "tasks.1.name: a PyTorchJob does not support “hand”. It uses “worker”.",
                "tasks.1.policies: a PyTorchJob adds this (PodFailed → TerminateJob).",
                "plugins.pytorch.master: a PyTorchJob does not support “boss”. It uses “master”.",
                "plugins.pytorch.worker: a PyTorchJob does not support “hand”. It uses “worker”.",
            ],
        ),
        (
            "tfjob",
            a_job("worker", min_success=1, policies=[AFTER_THREE], plugins={"env": [], "tensorflow": ["--port=5000"]}),
            [
                "tasks.0.policies: a TFJob adds this (PodFailed → TerminateJob).",
                "min_success: a TFJob does not support this (1).",
                "policies: a TFJob does not support this (exit code 3 → RestartJob after 5 s).",
                "plugins.env: a TFJob does not support this.",
            ],
        ),
    ],
)
def test_unsupported_fields_are_reported(word, spec, notes):
    assert list(formats.write(spec, FORM[word]).notes) == notes


@pytest.mark.parametrize(
    ("word", "spec", "path", "sentence"),
    [
        ("tfjob", a_job("worker", "logger"), "tasks.1", "TFJob has the roles Chief, Master, PS, Worker, Eval"),
        ("pytorchjob", a_job("a", "b"), "tasks.0", "PyTorchJob has the roles Master, Worker. a is not one of them."),
        ("pytorchjob", a_job("master"), "tasks.0", "The Master of a PyTorchJob is one pod. master has 2 replicas."),
        ("job", a_job("a", "b"), "tasks", "A Kubernetes Job has one pod template. This job has a, b."),
    ],
)
def test_unsupported_job_is_refused(word, spec, path, sentence):
    with pytest.raises(Invalid) as raised:
        formats.write(spec, FORM[word])
    assert [p for p in raised.value.problems if p.path == path and sentence in p.message]
