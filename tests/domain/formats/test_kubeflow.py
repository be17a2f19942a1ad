"""Kubeflow's jobs in and out: what a manifest asks for is done here, or it is said that it is not."""

import pytest

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.formats import yaml_text
from hekla.domain.jobspec import JobSpec

FORM = {form.word: form for form in formats.FORMATS}
FAILED_ENDS = {"events": ["PodFailed"], "action": "TerminateJob"}
FAILED_RESTARTS = {"events": ["PodFailed"], "action": "RestartPod"}
LEADS = {"events": ["TaskCompleted"], "action": "CompleteJob"}
SIGNALS = [{"exit_code": code, "action": "RestartPod"} for code in (130, 137, 138, 143)]

PYTORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: mnist
  namespace: kubeflow
spec:
  nprocPerNode: "2"
  runPolicy:
    cleanPodPolicy: None
    ttlSecondsAfterFinished: 60
    backoffLimit: 5
    activeDeadlineSeconds: 100
    suspend: false
    managedBy: kubeflow.org/training-operator
    schedulingPolicy: {minAvailable: 3, queue: research, priorityClass: high, minResources: {cpu: 3}}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata: {annotations: {sidecar.istio.io/inject: "false"}}
        spec:
          schedulerName: volcano
          restartPolicy: Always
          containers:
            - {name: sidecar, command: [log]}
            - name: pytorch
              image: pytorch/mnist
              command: [python, mnist.py]
              ports: [{name: pytorchjob-port, containerPort: 4000}]
              resources: {limits: {nvidia.com/gpu: 1}}
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - {name: pytorch, command: [python, mnist.py], args: [--fast]}
"""


def test_a_pytorchjob_becomes_a_gang_of_master_and_workers():
    loaded = formats.load(PYTORCH)
    assert loaded.spec == JobSpec.parse(
        {
            "name": "mnist",
            "queue": "research",
            "min_available": 3,
            "max_retry": 5,
            "ttl_seconds_after_finished": 60,
            "plugins": {"pytorch": ["--port=4000"]},
            "tasks": [
                {
                    "name": "master",
                    "image": "pytorch/mnist",
                    "command": ["python", "mnist.py"],
                    "env": {"PET_NPROC_PER_NODE": "2"},
                    "resources": {"nvidia.com/gpu": "1"},
                    "policies": [FAILED_RESTARTS, LEADS],
                },
                {
                    "name": "worker",
                    "replicas": 2,
                    "command": ["python", "mnist.py", "--fast"],
                    "env": {"PET_NPROC_PER_NODE": "2"},
                    "policies": [*SIGNALS, FAILED_ENDS],
                },
            ],
        }
    )
    policy, replicas = "spec.runPolicy", "spec.pytorchReplicaSpecs"
    assert [warning.partition(": not honoured")[0] for warning in loaded.warnings] == [
        f"{policy}.activeDeadlineSeconds",
        f"{policy}.managedBy",
        f"{policy}.schedulingPolicy.priorityClass",
        f"{policy}.schedulingPolicy.minResources",
        f"{policy}.cleanPodPolicy",
        "metadata.namespace",
        f"{replicas}.Master.template.metadata.annotations.sidecar.istio.io/inject",
        f"{replicas}.Master.template.spec.containers[0]",
        f"{replicas}.Worker.restartPolicy",
    ]


def manifest(kind, replicas, *, more=None, version="kubeflow.org/v1"):
    """A manifest of that kind; `replicas` gives (count, restart policy) by role."""
    field, container = {
        "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
        "TFJob": ("tfReplicaSpecs", "tensorflow"),
    }[kind]
    template = {"spec": {"containers": [{"name": container, "command": ["run"]}]}}
    roles = {
        role: {"replicas": count, "template": template} | ({"restartPolicy": restart} if restart else {})
        for role, (count, restart) in replicas.items()
    }
    job = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {field: roles, **(more or {})}}
    return yaml_text.write([job])


def policies(text):
    spec = formats.load(text).spec.document()
    return [task.get("policies", []) for task in spec["tasks"]]


@pytest.mark.parametrize(
    ("kind", "replicas", "more", "expected"),
    [
        ("PyTorchJob", {"Master": (1, "Never")}, {}, [[]]),
        ("PyTorchJob", {"Master": (1, "")}, {}, [[FAILED_RESTARTS]]),
        ("PyTorchJob", {"Worker": (2, "Never")}, {}, [[FAILED_ENDS]]),
        ("PyTorchJob", {"Worker": (2, "Always")}, {}, [[FAILED_RESTARTS]]),
        ("PyTorchJob", {"Worker": (2, "")}, {"runPolicy": {"backoffLimit": 0}}, [[FAILED_ENDS]]),
        ("PyTorchJob", {"Worker": (2, ""), "Master": (1, "")}, {}, [[FAILED_RESTARTS], [FAILED_RESTARTS, LEADS]]),
        ("PyTorchJob", {"Worker": (0, "Never"), "Master": (1, "Never")}, {}, [[], []]),
        ("TFJob", {"Worker": (1, "ExitCode")}, {}, [SIGNALS]),
        ("TFJob", {"Worker": (2, "ExitCode")}, {}, [[*SIGNALS, FAILED_ENDS]]),
        ("TFJob", {"PS": (1, ""), "Worker": (2, "")}, {}, [[FAILED_ENDS], [FAILED_ENDS, LEADS]]),
        ("TFJob", {"Chief": (1, ""), "Worker": (2, "")}, {}, [[FAILED_ENDS, LEADS], [FAILED_ENDS]]),
    ],
)
def test_a_restart_policy_becomes_policies(kind, replicas, more, expected):
    assert policies(manifest(kind, replicas, more=more)) == expected


@pytest.mark.parametrize(
    ("kind", "roles", "plugins"),
    [
        ("PyTorchJob", ["Master", "Worker"], {"pytorch": ()}),
        ("PyTorchJob", ["Worker"], {"pytorch": ("--master=worker",)}),
        ("TFJob", ["PS", "Worker", "Chief", "Evaluator"], {"tensorflow": ()}),
        ("TFJob", ["Master", "Worker"], {"tensorflow": ("--chief=master",)}),
    ],
)
def test_pods_are_told_about_one_another(kind, roles, plugins):
    spec = formats.load(manifest(kind, dict.fromkeys(roles, (1, "")))).spec
    assert (spec.plugins, [task.name for task in spec.tasks]) == (plugins, [role.lower() for role in roles])


def test_an_elastic_pytorchjob_runs_from_least_to_most():
    elastic = {
        "minReplicas": 2, "maxReplicas": 4, "rdzvBackend": "etcd", "rdzvHost": "h", "maxRestarts": 9, "nProcPerNode": 8,
        "metrics": [{"type": "Resource"}],
    }  # fmt: skip
    loaded = formats.load(manifest("PyTorchJob", {"Worker": (3, "")}, more={"elasticPolicy": elastic}))
    (worker,) = loaded.spec.tasks
    assert (worker.min_available, worker.replicas, loaded.spec.gang_minimum) == (2, 4, 2)
    assert worker.env == {
        "PET_RDZV_BACKEND": "etcd",
        "PET_NNODES": "2:4",
        "PET_MAX_RESTARTS": "9",
        "PET_NPROC_PER_NODE": "8",
    }
    assert [warning.partition(":")[0] for warning in loaded.warnings] == [
        "spec.elasticPolicy.rdzvHost",
        "spec.elasticPolicy.metrics",
    ]


@pytest.mark.parametrize(("policy", "told"), [("", 0), ("AllWorkers", 0), ("ChiefWorker", 1)])
def test_a_success_policy_that_is_not_kept_is_told(policy, told):
    text = manifest("TFJob", {"Worker": (2, "")}, more={"successPolicy": policy})
    assert len(formats.load(text).warnings) == told


@pytest.mark.parametrize(
    ("old", "new", "path", "sentence"),
    [
        ("restartPolicy: ExitCode", "restartPolicy: Sometimes", "Worker.restartPolicy", "is not one of Always"),
        ("    Worker:", "    Workers:", "pytorchReplicaSpecs.Workers", "did you mean “Worker”?"),
        ("replicas: 2", "replicas: two", "Worker.replicas", "a whole number"),
        ("command: [python, mnist.py], args", "args", "Worker.template.spec.containers[0].command", "must be given"),
        ("backoffLimit: 5", "backoffLimit: x", "spec.runPolicy.backoffLimit", "a whole number"),
        ("backoffLimit: 5", "backoffLimit: -1", "spec.runPolicy.backoffLimit", "at least 1"),
        ("minAvailable: 3", "minAvailable: 9", "spec.runPolicy.schedulingPolicy.minAvailable", "never be reached"),
        ("containerPort: 4000", "containerPort: x", "spec.pytorchReplicaSpecs[0]", "must be a port"),
        ("kubeflow.org/v1", "kubeflow.org/v2", "apiVersion", "For a PyTorchJob this must be kubeflow.org/v1, not"),
    ],
)
def test_what_is_wrong_is_told_with_its_path_in_the_manifest(old, new, path, sentence):
    assert old in PYTORCH
    with pytest.raises(Invalid) as raised:
        formats.load(PYTORCH.replace(old, new, 1))
    assert [p for p in raised.value.problems if p.path.endswith(path) and sentence in p.message], raised.value.problems


def test_more_restarts_than_a_job_may_have_are_told():
    loaded = formats.load(PYTORCH.replace("backoffLimit: 5", "backoffLimit: 5000"))
    assert loaded.spec.max_retry == 1000
    assert any("backoffLimit: not honoured: a job restarts at most 1000 times" in note for note in loaded.warnings)
