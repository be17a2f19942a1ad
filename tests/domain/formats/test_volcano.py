"""Reading and writing Volcano Jobs: ignored fields have warnings, and problems have paths."""

import re

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.domain.specs import SPECS
from tests.support.examples import examples

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.network_topology import NetworkTopologySpec

DIGITS = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: digits-code
data:
  train.py: |
    print("training")
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: digits
  annotations:
    hekla.io/environment: numpy
    hekla.io/priority: "5"
spec:
  schedulerName: volcano
  queue: research
  minAvailable: 3
  maxRetry: 0
  plugins: {env: [], tensorflow: ["--port=2222"]}
  policies:
  - {event: PodEvicted, action: RestartJob}
  tasks:
  - name: ps
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: ps
          command: [python, train.py]
          args: [--role, ps]
          resources: {requests: {cpu: 1}, limits: {cpu: 1, memory: 1Gi}}
          volumeMounts: [{name: code, mountPath: /code}]
        volumes: [{name: code, configMap: {name: digits-code}}]
  - name: worker
    replicas: 2
    policies:
    - {events: [TaskCompleted], action: CompleteJob}
    - {exitCode: 3, action: RestartTask, timeout: 1m30s}
    template:
      metadata: {annotations: {hekla.io/environment: torch}}
      spec:
        nodeSelector: {gpu: "true"}
        terminationGracePeriodSeconds: 5
        containers:
        - name: worker
          image: python:3.12
          workingDir: /code
          command: [python, train.py]
          env: [{name: LR, value: "0.1"}, {name: EMPTY}]
          volumeMounts: [{name: code, mountPath: /code}]
        volumes: [{name: code, configMap: {name: digits-code}}]
"""


def test_distributed_training_is_read():
    loaded = formats.load(DIGITS)
    assert loaded.warnings == ()
    assert loaded.spec == JobSpec.parse(
        {
            "name": "digits",
            "queue": "research",
            "priority": 5,
            "min_available": 3,
            "plugins": {"env": [], "tensorflow": ["--port=2222"]},
            "policies": [{"events": ["PodEvicted"], "action": "RestartJob"}],
            "files": {"train.py": 'print("training")\n'},
            "tasks": [
                {
                    "name": "ps",
                    "environment": "numpy",
                    "command": ["python", "train.py", "--role", "ps"],
                    "resources": {"cpu": "1", "memory": "1Gi"},
                },
                {
                    "name": "worker",
                    "replicas": 2,
                    "environment": "torch",
                    "image": "python:3.12",
                    "command": ["python", "train.py"],
                    "env": {"LR": "0.1", "EMPTY": ""},
                    "node_selector": {"gpu": "true"},
                    "grace_seconds": 5,
                    "policies": [
                        {"events": ["TaskCompleted"], "action": "CompleteJob"},
                        {"exit_code": 3, "action": "RestartTask", "timeout_seconds": 90},
                    ],
                },
            ],
        }
    )


@settings(max_examples=examples(150), deadline=None)
@given(SPECS)
def test_round_trip(spec):
    loaded = formats.load(formats.dump(spec))
    assert all("ReadWriteOnce" in found for found in loaded.warnings)
    assert loaded.spec == spec


@settings(max_examples=examples(50), deadline=None)
@given(SPECS)
def test_second_writing_is_identical(spec):
    text = formats.dump(spec)
    assert formats.dump(formats.load(text).spec) == text


def test_json_is_accepted():
    spec = JobSpec.parse({"name": "a", "tasks": [{"name": "b", "command": ["c"]}]})
    documents = list(yaml.safe_load_all(formats.dump(spec)))
    assert formats.load(str(documents[0]).replace("'", '"')).spec == spec


def changed(old, new, text=DIGITS):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("  name: digits\n", "  name: digits\n  namespace: ml\n", "metadata.namespace: ignored: a job belongs"),
        ("  name: digits\n", "  name: digits\n  labels: {a: b}\n", "metadata.labels: ignored."),
        (
            "        restartPolicy: Never",
            "        restartPolicy: Never\n        activeDeadlineSeconds: 9",
            "spec.tasks[0].template.spec.activeDeadlineSeconds: ignored: a deadline applies to the whole job",
        ),
        ("    hekla.io/priority", "    other: x\n    hekla.io/priority", "metadata.annotations.other: ignored."),
        (
            "  queue:",
            "  volumes: [{mountPath: /d, volumeClaim: {volumeName: v, resources: {requests: {storage: 1}}}}]\n  queue:",
            "spec.volumes[0].volumeClaim.volumeName: ignored.",
        ),
        (
            "  queue:",
            "  networkTopology: {mode: soft, highestTierAllowed: 1}\n  queue:",
            "spec.networkTopology.highestTierAllowed: Without effect",
        ),
        ("schedulerName: volcano", "schedulerName: mine", "spec.schedulerName: ignored"),
        ("Never", "OnFailure", "spec.tasks[0].template.spec.restartPolicy: ignored: programs do not restart"),
        (
            "        nodeSelector:",
            "        dnsPolicy: None\n        nodeSelector:",
            "dnsPolicy: ignored.",
        ),
        ("limits: {cpu: 1,", "limits: {cpu: 2,", "resources.limits.cpu: ignored: the request is also"),
        ("{name: EMPTY}", "{name: B, valueFrom: {x: y}}", "containers[0].env[1].valueFrom: ignored."),
        (
            "        - name: worker",
            "        - {name: a, command: [b]}\n        - name: worker",
            "containers[1]: ignored",
        ),
        (
            "configMap: {name: digits-code}",
            "configMap: {name: other}",
            "volumes[0]: ignored: the text does not have this",
        ),
        (
            "configMap: {name: digits-code}",
            "hostPath: {path: /}",
            "volumes[0]: ignored: jobs cannot mount folders of the nodes",
        ),
        ("configMap: {name: digits-code}", "nfs: {path: /}", "volumes[0]: ignored: only claims by name"),
        (
            "{name: code, mountPath",
            "{name: data, mountPath",
            "volumeMounts[0]: ignored: unknown volume “data”.",
        ),
        (
            "train.py]\n          args",
            "/code/train.py]\n          args",
            "containers[0].command: ignored: /code becomes",
        ),
        ("kind: ConfigMap", "kind: ConfigMap\nbinaryData: {a: b}", "ConfigMap digits-code.binaryData: ignored."),
        ("---\n", "---\napiVersion: v1\nkind: Service\n---\n", "document 2: ignored: a “Service”"),
    ],
    ids=range(19),
)
def test_ignored_fields_are_reported_with_their_path(old, new, warning):
    assert [found for found in formats.load(changed(old, new)).warnings if warning in found]


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("{name: [ps]}", {"tasks": ("ps",), "iteration": "all"}),
        ("{name: [ps], iteration: any}", {"tasks": ("ps",), "iteration": "any"}),
        ("{name: [ps], iteration: all}", {"tasks": ("ps",), "iteration": "all"}),
        ("{name: [], iteration: any}", None),
    ],
)
def test_task_dependencies_are_read_and_written(written, want):
    loaded = formats.load(changed("    replicas: 2", f"    replicas: 2\n    dependsOn: {written}"))
    dependency = loaded.spec.task("worker").depends_on
    assert loaded.warnings == ()
    assert (dependency and dependency.model_dump()) == want
    assert formats.load(formats.dump(loaded.spec)).spec == loaded.spec


@pytest.mark.parametrize(
    ("more", "minimum", "topology"),
    [
        ("", 4, None),
        (", minPartitions: 0", 4, None),
        (", minPartitions: 1", 2, None),
        (", networkTopology: {highestTierAllowed: 1}", 4, NetworkTopologySpec(highest_tier_allowed=1)),
    ],
)
def test_partitions_are_read_and_written(more, minimum, topology):
    policy = f"{{totalPartitions: 2, partitionSize: 2{more}}}"
    loaded = formats.load(changed("    replicas: 2", f"    replicas: 4\n    partitionPolicy: {policy}"))
    task = loaded.spec.task("worker")
    assert (task.partition_size, task.minimum, task.partition_topology) == (2, minimum, topology)
    assert loaded.warnings == ()
    assert formats.load(formats.dump(loaded.spec)).spec == loaded.spec


LR = "env: [{name: LR"
SIZED = "resources: {{limits: {{cpu: {cpu}, memory: {memory}}}}}\n          " + LR.replace("{", "{{")
PINNED = DIGITS.replace(LR, SIZED.format(cpu=2, memory="1Gi"))


@pytest.mark.parametrize(("cpu", "memory"), [(2, 0), (0, "1Gi"), ("1500m", "1Gi")])
def test_pod_that_no_node_pins_cannot_have_a_topology_policy(cpu, memory):
    text = DIGITS.replace(LR, SIZED.format(cpu=cpu, memory=memory))
    with pytest.raises(Invalid, match=r"topologyPolicy: Only with a whole number of CPUs and an amount of memory"):
        formats.load(changed("    replicas: 2", "    replicas: 2\n    topologyPolicy: restricted", text))


@pytest.mark.parametrize(("written", "policy"), [("restricted", "restricted"), ("none", "none"), ('""', "none")])
def test_topology_policy_is_read_and_written(written, policy):
    loaded = formats.load(changed("    replicas: 2", f"    replicas: 2\n    topologyPolicy: {written}", PINNED))
    assert (loaded.spec.task("worker").topology_policy, loaded.warnings) == (policy, ())
    assert formats.load(formats.dump(loaded.spec)).spec == loaded.spec


def test_annotations_for_the_scheduler_are_read_from_templates_and_written():
    more = 'hekla.io/environment: torch, volcano.sh/preemptable: "false", volcano.sh/task-priority: "7", a/b: c'
    loaded = formats.load(changed("hekla.io/environment: torch", more))
    worker = loaded.spec.task("worker")
    assert worker.annotations == {"volcano.sh/preemptable": "false", "volcano.sh/task-priority": "7"}
    assert [one for one in loaded.warnings if "annotations" in one] == [
        one for one in loaded.warnings if "annotations.a/b" in one
    ]
    assert formats.load(formats.dump(loaded.spec)).spec == loaded.spec


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({"volcano.sh/task-priority": "high"}, "annotations.volcano.sh/task-priority: Must be an integer"),
        ({"volcano.sh/gpu-index": "1"}, "annotations.volcano.sh/gpu-index: The scheduler does not read"),
    ],
)
def test_annotations_of_a_task_that_the_scheduler_cannot_read_are_refused(annotations, problem):
    with pytest.raises(Invalid, match=problem):
        JobSpec.parse({"name": "x", "tasks": [{"name": "t", "command": ["x"], "annotations": annotations}]})


def test_unknown_topology_policy_is_refused():
    with pytest.raises(Invalid, match="topologyPolicy"):
        formats.load(changed("    replicas: 2", "    replicas: 2\n    topologyPolicy: close"))


@pytest.mark.parametrize("events", ["events: PodEvicted", "events: [PodEvicted]", "event: PodEvicted"])
def test_single_event_needs_no_list(events):
    loaded = formats.load(changed("event: PodEvicted", events))
    assert (loaded.spec, loaded.warnings) == (formats.load(DIGITS).spec, ())


@pytest.mark.parametrize(
    ("events", "path", "sentence"),
    [
        ("events: {PodEvicted: 1}", "spec.policies[0].events", "Must be a list, not a mapping"),
        ("events: PodEvict", "spec.policies[0].events[0]", "mean “PodEvicted”?"),
        ("event: PodEvicted, events: PodEvict", "spec.policies[0].events[1]", "mean “PodEvicted”?"),
        ("events: []", "spec.policies[0]", "A policy needs events or an exit code."),
        ("events: PodEvicted, exitCode: 2", "spec.policies[0]", "not both"),
    ],
)
def test_wrong_events_have_one_problem(events, path, sentence):
    with pytest.raises(Invalid) as raised:
        formats.load(changed("event: PodEvicted", events))
    ((found, message),) = [(problem.path, problem.message) for problem in raised.value.problems]
    assert found == path
    assert sentence in message


def test_ssh_plugin_is_accepted_with_a_warning():
    loaded = formats.load(changed("plugins: {env: [],", "plugins: {ssh: [], env: [],"))
    (warning,) = loaded.warnings
    assert warning.startswith("spec.plugins.ssh: pods get the job's keys in .ssh")
    assert "The job must start its own sshd" in warning
    assert set(loaded.spec.plugins) == {"env", "ssh", "tensorflow"}


def test_private_key_in_a_manifest_is_refused():
    with pytest.raises(Invalid) as raised:
        formats.load(changed("plugins: {env: [],", 'plugins: {ssh: ["--ssh-private-key=s3cret"], env: [],'))
    (problem,) = raised.value.problems
    assert problem.path == "spec.plugins.ssh"
    assert "everyone who can see the job can read a key in it" in problem.message
    assert "s3cret" not in problem.message


def test_number_of_warnings_is_limited():
    fields = "".join(f"  field{number}: 1\n" for number in range(80))
    warnings = formats.load(changed("  queue: research\n", fields)).warnings
    assert (len(warnings), warnings[-1]) == (51, "… and 30 more ignored fields.")


WORKER = "spec.tasks[1].template.spec.containers[0]"


@pytest.mark.parametrize(
    ("old", "new", "path", "sentence"),
    [
        ("replicas: 2", "replicas: two", "spec.tasks[1].replicas", "an integer, not “two”"),
        ("replicas: 2", "replicas: [2]", "spec.tasks[1].replicas", "an integer, not a list"),
        ("    replicas: 2", "    replica: 2", "spec.tasks[1].replica", "Did you mean “replicas”?"),
        ("minAvailable: 3", "minAvailable: 30", "spec.minAvailable", "3 replicas in total"),
        (
            "name: worker\n    replicas",
            "name: Worker\n    replicas",
            "spec.tasks[1].name",
            "“Worker” is not a valid name",
        ),
        ("[python, train.py]\n          env", "train.py\n          env", f"{WORKER}.command", "Must be a list"),
        ("[--role, ps]", "[--n, 3]", "spec.tasks[0].template.spec.containers[0].args[1]", "Put it in quotes"),
        ('value: "0.1"', "value: 0.1", f"{WORKER}.env[0].value", "Put it in quotes"),
        ("{name: LR,", "{", f"{WORKER}.env[0].name", "needs a name"),
        (
            "requests: {cpu: 1}",
            "requests: {cpu: x}",
            "spec.tasks[0].template.spec.containers[0].resources.requests.cpu",
            "x",
        ),
        ("event: PodEvicted", "event: PodEvict", "spec.policies[0].event", "Did you mean “PodEvicted”?"),
        (
            "replicas: 2",
            "replicas: 2\n    partitionPolicy: {totalPartitions: 2, partitionSize: 2}",
            "spec.tasks[1].partitionPolicy",
            "2 partitions of 2 need 4 replicas, not 2",
        ),
        (
            "replicas: 2",
            "replicas: 2\n    partitionPolicy: {partitionSize: 3}",
            "spec.tasks[1].partitionPolicy.partitionSize",
            "not a multiple of the partition size 3",
        ),
        ("replicas: 2", "dependsOn: {name: [pss]}", "spec.tasks[1].dependsOn.name[0]", "Did you mean “ps”?"),
        ("replicas: 2", "dependsOn: {name: ps}", "spec.tasks[1].dependsOn.name", "Must be a list, not “ps”"),
        ("replicas: 2", "dependsOn: {names: [ps]}", "spec.tasks[1].dependsOn.names", "Did you mean “name”?"),
        ("replicas: 2", "dependsOn: {name: [worker]}", "spec.tasks[1].dependsOn", "between tasks: worker → worker"),
        ("exitCode: 3", "exitCode: x", "spec.tasks[1].policies[1].exitCode", "an integer"),
        ("1m30s", "soon", "spec.tasks[1].policies[1].timeout", "for example 90s, 10m or 1h30m"),
        ("--port=2222", "--port=x", "spec.plugins.tensorflow[0]", "must be a port"),
        ("tensorflow:", "nonsense:", "spec.plugins.nonsense", "Unknown plugin"),
        (
            'priority: "5"',
            'active-deadline-seconds: "0"',
            "metadata.annotations.hekla.io/active-deadline-seconds",
            "at least 1",
        ),
        ('priority: "5"', "priority: high", "metadata.annotations.hekla.io/priority", "an integer in quotes"),
        (
            "environment: torch",
            "environment: [x]",
            "spec.tasks[1].template.metadata.annotations.hekla.io/environment",
            "Must be a string",
        ),
        ("batch.volcano.sh/v1alpha1", "batch/v1beta9", "apiVersion", "For a Job this must be"),
        ("  name: digits\n", "  name: [x]\n", "metadata.name", "Must be a string, not a list"),
        ("  queue: research", "  queue: Research", "spec.queue", "is not a valid name"),
        (
            "terminationGracePeriodSeconds: 5",
            "terminationGracePeriodSeconds: -5",
            "terminationGracePeriodSeconds",
            "at least 0",
        ),
        ("  tasks:\n", "  tasks: 3\n  job:\n", "spec.tasks", "Must be a list, not 3"),
        ("  train.py: |\n    print", "  train.py:\n    print", "data.train.py", "Must be a string, not a mapping"),
    ],
    ids=range(30),
)
def test_problem_has_its_path_in_the_manifest(old, new, path, sentence):
    text = changed(old, new).replace('print("training")', "print: 3" if "data.train" in path else 'print("training")')
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    assert [problem for problem in raised.value.problems if problem.path.endswith(path) and sentence in problem.message]


def test_all_problems_are_reported_at_once():
    text = changed("replicas: 2", "replicas: two", changed("1m30s", "soon", changed("maxRetry: 0", "maxRetry: -1")))
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    assert sorted(problem.path for problem in raised.value.problems) == [
        "spec.maxRetry",
        "spec.tasks[1].policies[1].timeout",
        "spec.tasks[1].replicas",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The text has no job"),
        ("hello", "Document 1 must be a mapping"),
        ("[1, 2]", "Document 1 must be a mapping"),
        ("kind: Service", "The text has no job"),
        (f"{DIGITS}\n---\n{DIGITS}", "The text has 2 jobs"),
        ("{}", "kind: Required. Supported formats: Job of batch.volcano.sh/v1alpha1"),
        (
            "{kind: Job, apiVersion: batch.volcano.sh/v1alpha1, spec: 3}",
            "spec: Must be a mapping of fields to values, not 3.",
        ),
        ("a: b: c", "Line 1, column 5"),
        ("x" * 10_000_000, "The limit is 1 MiB"),
    ],
    ids=range(9),
)
def test_other_text_is_refused_with_a_reason(text, sentence):
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    assert sentence in raised.value.message


WORDS = st.sampled_from(["kind", "metadata", "name", "spec", "tasks", "template", "containers", "env", "data"])
LEAVES = st.sampled_from([None, True, 3, 0.5, "", "Job", "batch.volcano.sh/v1alpha1", "\0"])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@example({"spec": {"tasks": [{"name": [None]}]}})
@given(st.dictionaries(WORDS, TREES))
def test_any_document_is_read_or_refused(tree):
    text = yaml.safe_dump({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **tree})
    assert outcome(text)


def outcome(text):
    try:
        return formats.load(text).spec
    except Invalid as error:
        return error.problems


def test_scheduler_annotations_are_read_and_written():
    near = "    volcano.sh/task-topology-affinity: ps,worker\n    hekla.io/priority"
    loaded = formats.load(DIGITS.replace("    hekla.io/priority", near))
    assert loaded.spec.annotations == {"volcano.sh/task-topology-affinity": "ps,worker"}
    assert formats.load(formats.dump(loaded.spec)).spec == loaded.spec


def test_name_is_generated_from_its_beginning():
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: sample-job-}\nspec: {template: {spec: "
    text += "{containers: [{name: c, command: [x]}]}}}"
    first, second = (formats.load(text).spec for _ in range(2))
    assert re.fullmatch(r"sample-job-[a-z0-9]{5}", first.name)
    assert first.name != second.name
    assert formats.load(formats.dump(first)).spec == first
    assert len(formats.load(text.replace("sample-job-", "x" * 60)).spec.name) == 53
    assert formats.load(text.replace("{generateName", "{name: own, generateName")).spec.name == "own"
    assert formats.load(text, seed="key").spec.name == formats.load(text, seed="key").spec.name
    with pytest.raises(Invalid) as raised:
        formats.load(text.replace("sample-job-", "Sample_"))
    assert [problem.path for problem in raised.value.problems] == ["metadata.generateName"]
