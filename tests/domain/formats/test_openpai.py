"""Reading and writing OpenPAI JobConfigs: each field has an effect or a warning."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.jobconfigs import VERSION_2, spec_of
from tests.support.examples import examples

from hekla.domain import formats, secrets, yaml_text
from hekla.domain.errors import Invalid

ENDS = {"events": ["PodFailed"], "action": "TerminateJob"}
AGAIN = {"events": ["PodFailed"], "action": "RestartJob"}
POD_AGAIN = {"events": ["PodFailed"], "action": "RestartPod"}
LEADS = {"events": ["TaskCompleted"], "action": "CompleteJob"}
LOST = {"events": ["PodEvicted"], "action": "RestartJob"}

CONFIG = """
protocolVersion: 2
name: Flowers_7
type: job
version: "1.0"
contributor: botany
description: Tell flowers apart
parameters: {epochs: 3, rates: [0.1, 0.2], quick: true}
secrets: {token: open-sesame, registry: {user: ali}}
prerequisites:
  - {protocolVersion: 2, type: dockerimage, name: torch, uri: "lab/torch:2"}
  - {type: script, name: code, uri: git.lab/flowers, version: abc}
  - {type: data, name: scans, uri: ["http://one", "http://two"]}
  - {type: output, name: out, uri: "/results"}
taskRoles:
  Worker_A:
    instances: 2
    dockerImage: torch
    script: code
    data: scans
    output: out
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1, ports: {board: 2}}
    commands:
      - "  git clone https://<% $secrets.token %>@<% $script.uri %>  "
      - train --epochs <% $parameters.epochs %> --rate <%$parameters.rates[1]%> --quick=<% $parameters.quick %>
      - cp <% $data.uri[0] %> <% $output.uri %>/<% $script.version %>
  ps:
    completion: {minSucceededInstances: -1}
    dockerImage: torch
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}
    commands: [serve]
deployments:
  - name: near
    taskRoles: {ps: {preCommands: [warm up], postCommands: [cool down]}}
  - name: far
    taskRoles: {ps: {preCommands: [travel]}}
defaults: {virtualCluster: Green_House, deployment: near}
extras: {submitFrom: a form, hivedScheduler: {jobPriorityClass: prod}}
"""


def config(**changes):
    return {**yaml_text.read(CONFIG)[0], **changes}


def load(document):
    return formats.load(json.dumps(document))


def role(**changes):
    """A JobConfig with one task role."""
    one = {"dockerImage": "i", "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0}, "commands": ["run"]}
    images = [{"type": "dockerimage", "name": "i", "uri": "image"}]
    job = {"protocolVersion": 2, "name": "one", "type": "job", "prerequisites": images}
    return {**job, "taskRoles": {"main": {**one, **changes}}}


def test_distributed_training_is_read():
    loaded = formats.load(CONFIG)
    assert loaded.spec.document() == {
        "name": "flowers-7",
        "description": "Tell flowers apart",
        "queue": "green-house",
        "priority": 100,
        "plugins": {
            "openpai": [
                "--name=Flowers_7",
                "--roles=worker-a:Worker_A",
                "--ports=worker-a/board:2",
                "--completion=ps:1/-1",
            ]
        },
        "policies": [LOST],
        "tasks": [
            {
                "name": "worker-a",
                "replicas": 2,
                "command": [
                    "bash",
                    "-c",
                    "git clone https://<% $secrets.token %>@git.lab/flowers\n"
                    "train --epochs 3 --rate 0.2 --quick=true\n"
                    "cp http://one /results/abc",
                ],
                "resources": {"cpu": "4", "memory": "8192Mi", "nvidia.com/gpu": "1"},
                "image": "lab/torch:2",
                "policies": [ENDS, LEADS],
            },
            {
                "name": "ps",
                "command": ["bash", "-c", "warm up\nserve\ncool down"],
                "resources": {"cpu": "1", "memory": "512Mi"},
                "image": "lab/torch:2",
                "policies": [ENDS],
            },
        ],
    }
    assert [warning.partition(":")[0] for warning in loaded.warnings] == ["name", "taskRoles.Worker_A"]


def test_secrets_are_not_in_the_job_or_any_written_text():
    loaded = formats.load(CONFIG)
    assert loaded.secrets == {"token": "open-sesame", "registry.user": "ali"}
    written = [formats.write(loaded.spec, form).text for form in formats.FORMATS if form.word.startswith("openpai")]
    assert not [text for text in (repr(loaded), str(loaded.warnings), *written) if "sesame" in text]


def test_secret_placeholders_are_filled_in():
    text = "a <% $secrets.token %> b <%$secrets.none%> <% $secrets.token %>"
    assert secrets.secret_names([text]) == {"token", "none"}
    assert secrets.fill(text, {"token": "x"}) == "a x b <%$secrets.none%> x"
    assert secrets.filled_length(text, {"token": "x"}) == len("a x b <%$secrets.none%> x")


def test_script_with_secrets_is_passed_by_environment():
    command, variables = secrets.fill_command(("bash", "-c", "a <% $secrets.token %>"), {"token": "x"})
    assert variables == {"HEKLA_SCRIPT": "a x"}
    assert command == ("bash", "-c", 'hekla_script=$HEKLA_SCRIPT; unset HEKLA_SCRIPT; eval "$hekla_script"')
    assert secrets.fill_command(("bash", "-c", "a"), {"token": "x"}) == (("bash", "-c", "a"), {})
    assert secrets.fill_command(("run", "<% $secrets.token %>"), {"token": "x"}) == (("run", "x"), {})


@pytest.mark.parametrize(
    "value", ["text", 7, ["a"], {"a": "\0"}, {f"n{n}": "x" for n in range(101)}, {"a": "y" * 40_000}]
)
def test_invalid_secrets_are_refused_without_their_values(value):
    with pytest.raises(Invalid) as raised:
        load(config(secrets=value))
    (problem,) = raised.value.problems
    assert problem.path == "secrets"
    assert not any(word in problem.message for word in ("text", "yyy", "7"))


def policies_of(changes, **job):
    """For a job of one task role: the task's policies, and the job's policies and completion fields."""
    spec = load({**role(**changes), **job}).spec
    dump = spec.document()
    fields = {name: dump.get(name) for name in ("policies", "min_success", "min_available", "max_retry")}
    return dump["tasks"][0].get("policies"), {name: value for name, value in fields.items() if value is not None}


GANG = {"policies": [LOST]}


@pytest.mark.parametrize(
    ("changes", "job", "policies", "more"),
    [
        ({}, {}, None, {}),
        ({}, {"jobRetryCount": 2}, [AGAIN], {"max_retry": 2}),
        ({"instances": 3}, {}, [ENDS], GANG),
        ({"instances": 3}, {"jobRetryCount": 2}, [AGAIN], GANG | {"max_retry": 2}),
        ({"instances": 3, "completion": {"minFailedInstances": -1}}, {}, None, GANG),
        ({"instances": 3, "completion": {"minFailedInstances": 2}}, {}, None, GANG),
        ({"instances": 3, "completion": {"minSucceededInstances": 2}}, {}, [ENDS], GANG | {"min_success": 2}),
        ({"instances": 3, "completion": {"minSucceededInstances": None}}, {}, [ENDS], GANG),
        ({"instances": 3}, {"extras": {"gangAllocation": False}}, [ENDS], {"min_available": 1, "min_success": 3}),
        (
            {"instances": 3, "taskRetryCount": 4},
            {"extras": {"gangAllocation": False}},
            [POD_AGAIN],
            {"min_available": 1, "min_success": 3, "max_retry": 4},
        ),
    ],
)
def test_completion_and_retry_policies(changes, job, policies, more):
    assert policies_of(changes, **job) == (policies, more)


def plugin(name, **parameters):
    return {"extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": name, "parameters": parameters}]}}


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"extras": {"storages": [{"name": "nas"}]}}, "extras.storages: ignored: OpenPAI storage"),
        ({"extras": {"tensorBoard": {"x": 1}}}, "extras.tensorBoard: ignored."),
        ({"extras": {"jobStatusChangeNotification": {"running": True}}}, "jobStatusChangeNotification: ignored"),
        ({"extras": {"hivedScheduler": {"taskRoles": {"ps": {"skuType": "V"}}}}}, "hivedScheduler.taskRoles: ignored"),
        (plugin("ssh", jobssh=True), "runtimeplugin[0] (ssh): ignored: pods do not run sshd"),
        (plugin("tensorboard"), "(tensorboard): ignored: pods do not run TensorBoard"),
        (plugin("teamwise_storage"), "(teamwise_storage): ignored: OpenPAI storage"),
        (plugin("git"), "(git): ignored: it belongs to the OpenPAI runtime"),
        (
            {"parameters": {}},
            "taskRoles.Worker_A.commands: ignored: “<% $parameters.epochs %>”: the JobConfig has no value",
        ),
        ({"novelty": 1}, "novelty: ignored."),
        ({"jobRetryCount": 5000}, "jobRetryCount: ignored: a job restarts at most 1000 times."),
        ({"description": "x" * 3000}, "description: ignored: only its first 2,000"),
        (role(instances=2, taskRetryCount=1), "taskRoles.main.taskRetryCount: ignored: pods of a gang"),
        (role(instances=2, completion={"minFailedInstances": -1}), "completion.minFailedInstances: ignored"),
        (role(extraContainerOptions={"shmMB": 9000}), "extraContainerOptions.shmMB: ignored"),
        (role(extraContainerOptions={"infiniband": True}), "extraContainerOptions.infiniband: ignored"),
        (role(gpuType="V100"), "taskRoles.main.gpuType: ignored."),
        (
            role() | {"prerequisites": [{"type": "dockerimage", "name": "i", "uri": "u", "auth": {"password": "p"}}]},
            "prerequisites[0].auth: ignored",
        ),
    ],
)
def test_ignored_fields_are_reported_with_their_path(changes, warning):
    found = load(config(**changes)).warnings
    assert [one for one in found if warning in one], found


def test_disabled_features_are_not_reported():
    quiet = {"jobStatusChangeNotification": {"running": False}, **plugin("ssh", jobssh=False)["extras"]}
    assert load({**role(), "extras": quiet}).warnings == ()


@pytest.mark.parametrize(
    ("changes", "path", "sentence"),
    [
        ({"protocolVersion": 3}, "protocolVersion", "Must be 2, not 3."),
        ({"type": "script"}, "type", "Must be job"),
        ({"name": None}, "name", "Required."),
        ({"name": "a/b"}, "name", "“a/b” is not a valid name"),
        ({"name": "x" * 256}, "name", "is not a valid name. Use at most 255 letters"),
        ({"taskRoles": {"a b": role()["taskRoles"]["main"]}}, "taskRoles.a b", "“a b” is not a valid name"),
        (
            role(resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {"a,b": 1}}),
            "taskRoles.main",
            "“a,b” is not a valid name",
        ),
        ({"taskRoles": {}}, "taskRoles", "At least one"),
        ({"taskRoles": {"a": {"commands": ["x"]}}}, "taskRoles.a.dockerImage", "Required"),
        (role(dockerImage="j"), "taskRoles.main.dockerImage", "Unknown prerequisite “j”. Available: i."),
        (role(commands=[]), "taskRoles.main.commands", "At least one"),
        (role(commands=[7]), "taskRoles.main.commands[0]", "Must be a string, not 7."),
        (role(instances=0), "taskRoles.main.instances", "at least 1, not 0."),
        (role(instances=20_000), "taskRoles.main.instances", "at most 10000"),
        (role(completion={"minFailedInstances": -2}), "completion.minFailedInstances", "at least 1, or -1, not -2."),
        (role(comands=["x"]), "taskRoles.main.comands", "Did you mean “commands”?"),
        (role(resourcePerInstance={"cpu": "many"}), "taskRoles.main.resourcePerInstance.cpu", "is not an amount"),
        ({"defaults": {"deployment": "afar"}}, "defaults.deployment", "Did you mean “far”?"),
        ({"extras": {"hivedScheduler": {"jobPriorityClass": "high"}}}, "extras.hivedScheduler.jobPriorityClass", "not"),
        ({"prerequisites": [{"type": "image", "name": "x"}]}, "prerequisites[0].type", "is not one of dockerimage"),
        (role(prerequisites=["k"]), "taskRoles.main.prerequisites[0]", "Unknown prerequisite “k”"),
    ],
)
def test_problem_has_its_path(changes, path, sentence):
    with pytest.raises(Invalid) as raised:
        load(config(**changes))
    found = [(problem.path, problem.message) for problem in raised.value.problems]
    assert [one for one in found if one[0].endswith(path) and sentence in one[1]], found


def test_prerequisite_commands_are_in_dependency_order():
    def script_with_callbacks(name, start, end, **more):
        starts = {"event": "taskStarts", "commands": [start]}
        ends = {"event": "taskSucceeds", "commands": [end]}
        return {"type": "script", "name": name, "callbacks": [starts, ends], **more}

    job = role(prerequisites=["data", "git"])
    job["prerequisites"] += [
        script_with_callbacks("data", "fetch", "drop", require=["git"]),
        script_with_callbacks("git", "install", "remove"),
    ]
    extras = plugin("cmd", preCommands=["hello"], postCommands=["bye"])
    script = load({**job, **extras}).spec.tasks[0].command[-1].split("\n")
    assert script[:4] == ["install", "fetch", "hello", "run"]
    assert script[5:] == ["drop", "remove", "bye"]
    assert script[4].startswith("openpai_status=$?;")


def test_circular_prerequisites_are_refused():
    job = role(prerequisites=["a"])
    job["prerequisites"] += [{"type": "script", "name": "a", "require": ["b"]}]
    job["prerequisites"] += [{"type": "script", "name": "b", "require": ["a"]}]
    with pytest.raises(Invalid, match="“a” requires itself"):
        load(job)


def test_too_long_expanded_command_is_refused():
    job = role(commands=["<% $parameters.x %>" * 1000])
    with pytest.raises(Invalid) as raised:
        load({**job, "parameters": {"x": "y" * 10_000}})
    assert raised.value.problems[0].path == "taskRoles.main.commands"


@pytest.mark.parametrize(
    ("name", "roles", "job", "tasks"),
    [
        ("train", ["main"], "train", ["main"]),
        ("__", ["PS", "ps"], "job", ["ps", "ps-d7d4b9"]),
        ("a" * 255, ["w" * 63], "aaaaaaaaaaaaaaaaaaa-02d7160", None),
    ],
)
def test_names_are_converted(name, roles, job, tasks):
    one = role()["taskRoles"]["main"]
    spec = load({**role(), "name": name, "taskRoles": dict.fromkeys(roles, one)}).spec
    if tasks is None:
        assert len(spec.name) + len(spec.tasks[0].name) + 7 <= 63
    else:
        assert (spec.name, [task.name[:2] for task in spec.tasks]) == (job, [task[:2] for task in tasks])
    assert len({task.name for task in spec.tasks}) == len(roles)


VERSION_1 = {
    "jobName": "old.Job",
    "image": "lab/old",
    "dataDir": "hdfs://data",
    "retryCount": 2,
    "virtualCluster": "vc1",
    "taskRoles": [
        {
            "name": "main",
            "taskNumber": 2,
            "cpuNumber": 2,
            "memoryMB": 100,
            "gpuNumber": 1,
            "command": "python x.py",
            "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
        }
    ],
}


def test_version_1_json_is_read():
    loaded = load(VERSION_1)
    assert loaded.spec.document() == {
        "name": "old-job",
        "queue": "vc1",
        "max_retry": 2,
        "policies": [LOST],
        "plugins": {"openpai": ["--name=old.Job", "--ports=main/web:1", "--completion=main:1/-1"]},
        "tasks": [
            {
                "name": "main",
                "replicas": 2,
                "command": ["bash", "-c", "python x.py"],
                "image": "lab/old",
                "env": {"PAI_DATA_DIR": "hdfs://data"},
                "resources": {"cpu": "2", "memory": "100Mi", "nvidia.com/gpu": "1"},
                "policies": [AGAIN],
            }
        ],
    }
    assert [warning.partition(":")[0] for warning in loaded.warnings] == ["dataDir", "jobName"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"jobName": None}, "jobName"),
        ({"taskRoles": []}, "taskRoles"),
        ({"taskRoles": [{"name": "a"}]}, "taskRoles[0].command"),
        ({"taskRoles": [{"name": "a", "command": "x", "taskNumber": "two"}]}, "taskRoles[0].taskNumber"),
    ],
)
def test_problem_of_version_1_has_its_path(changes, path):
    with pytest.raises(Invalid) as raised:
        load({**VERSION_1, **changes})
    assert path in [problem.path for problem in raised.value.problems]


@settings(max_examples=examples(60), deadline=None)
@given(VERSION_2)
def test_jobconfig_survives_the_volcano_format(document):
    spec = spec_of(document)
    assert formats.load(formats.dump(spec)).spec == spec


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["prerequisites", "taskRoles", "deployments", "defaults", "extras", "secrets", "parameters", "jobRetryCount"]


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=4), ANYTHING)
def test_any_jobconfig_is_read_or_refused(changes, inner):
    for document in (config(**changes), role(completion=inner, commands=inner, instances=inner)):
        problems = problems_of(document)
        assert all(problem.message for problem in problems)


def problems_of(document):
    try:
        load(document)
    except Invalid as error:
        return error.problems
    return ()


def test_unknown_fields_of_prerequisites_and_deployments_are_reported():
    document = config()
    document["prerequisites"][1] |= {"branch": "main", "require": ["scans"], "checkout": {"depth": 1}}
    document["prerequisites"][2] |= {"region": "west"}
    document["taskRoles"]["Worker_A"]["commands"].append("echo <% $script.branch %>")
    document["deployments"][0] |= {"budget": 7}
    document["deployments"][0]["taskRoles"] |= {"chief": {"preCommands": ["x"]}}
    document["deployments"][0]["taskRoles"]["ps"] |= {"nice": 10}
    warnings = load(document).warnings
    assert [warning for warning in warnings if warning.startswith(("prereq", "deploy"))] == [
        "deployments[0].taskRoles.ps.nice: ignored.",
        "prerequisites[1].checkout: ignored.",
        "prerequisites[2].region: ignored.",
        "deployments[0].taskRoles.chief: ignored: the job has no task role of this name.",
        "deployments[0].budget: ignored.",
    ]
