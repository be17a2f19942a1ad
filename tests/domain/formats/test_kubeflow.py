"""Reading and writing Kubeflow's jobs: each field of a manifest has an effect or a warning."""

import pytest
import yaml

from hekla.domain import formats, yaml_text
from hekla.domain.autoscaling import Autoscaling
from hekla.domain.errors import Invalid
from hekla.domain.formats.fields import Findings
from hekla.domain.formats.files import Companions
from hekla.domain.formats.pytorchjob import PYTORCHJOB
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.formats.tfjob import TFJOB
from hekla.domain.jobspec import JobSpec

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


def test_pytorchjob_is_a_gang_of_master_and_workers():
    loaded = formats.load(PYTORCH)
    assert loaded.spec == JobSpec.parse(
        {
            "name": "mnist",
            "queue": "research",
            "priority_class": "high",
            "min_available": 3,
            "min_resources": {"cpu": "3"},
            "max_retry": 5,
            "active_deadline_seconds": 100,
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
    assert [warning.partition(": ignored")[0] for warning in loaded.warnings] == [
        f"{policy}.managedBy",
        f"{policy}.cleanPodPolicy",
        "metadata.namespace",
        f"{replicas}.Master.template.metadata.annotations.sidecar.istio.io/inject",
        f"{replicas}.Master.template.spec.containers[0]",
        f"{replicas}.Worker.restartPolicy",
    ]


FIELDS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "MPIJob": ("mpiReplicaSpecs", "mpi"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
}


def manifest(kind, replicas, *, more=None, version="kubeflow.org/v1"):
    """A manifest of this kind. `replicas`: (count, restart policy) by role."""
    field, container = FIELDS[kind]
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
        ("TFJob", {"Worker": (2, "ExitCode")}, {}, [[*SIGNALS, FAILED_ENDS, LEADS]]),
        ("TFJob", {"Worker": (2, "ExitCode")}, {"successPolicy": "AllWorkers"}, [[*SIGNALS, FAILED_ENDS]]),
        ("TFJob", {"PS": (1, ""), "Worker": (2, "")}, {}, [[FAILED_ENDS], [FAILED_ENDS, LEADS]]),
        ("MPIJob", {"Launcher": (1, ""), "Worker": (2, "")}, {}, [[FAILED_ENDS, LEADS], [FAILED_ENDS]]),
        ("XGBoostJob", {"Master": (1, ""), "Worker": (2, "")}, {}, [[FAILED_ENDS, LEADS], [FAILED_ENDS]]),
        ("PaddleJob", {"Worker": (2, "")}, {}, [[FAILED_RESTARTS]]),
        ("JAXJob", {"Worker": (2, "")}, {}, [[FAILED_RESTARTS]]),
        ("TFJob", {"Chief": (1, ""), "Worker": (2, "")}, {}, [[FAILED_ENDS, LEADS], [FAILED_ENDS]]),
    ],
)
def test_restart_policies_are_lifecycle_policies(kind, replicas, more, expected):
    assert policies(manifest(kind, replicas, more=more)) == expected


@pytest.mark.parametrize(
    ("kind", "roles", "plugins"),
    [
        ("PyTorchJob", ["Master", "Worker"], {"pytorch": ()}),
        ("PyTorchJob", ["Worker"], {"pytorch": ("--master=worker",)}),
        ("TFJob", ["PS", "Worker", "Chief", "Evaluator"], {"tensorflow": ()}),
        ("XGBoostJob", ["Master", "Worker"], {"xgboost": ()}),
        ("XGBoostJob", ["Worker"], {"xgboost": ("--master=worker",)}),
        ("JAXJob", ["Worker"], {"jax": ()}),
        ("PaddleJob", ["Worker"], {"paddle": ()}),
        ("PaddleJob", ["Master"], {"paddle": ("--worker=master",)}),
        ("MPIJob", ["Launcher", "Worker"], {"mpi": ("--master=launcher",)}),
        ("TFJob", ["Master", "Worker"], {"tensorflow": ("--chief=master",)}),
    ],
)
def test_kind_selects_the_job_plugin(kind, roles, plugins):
    spec = formats.load(manifest(kind, dict.fromkeys(roles, (1, "")))).spec
    assert (spec.plugins, [task.name for task in spec.tasks]) == (plugins, [role.lower() for role in roles])


def test_elastic_pytorchjob_starts_with_its_replicas_and_may_grow():
    elastic = {
        "minReplicas": 2, "maxReplicas": 4, "rdzvBackend": "etcd", "rdzvHost": "h", "maxRestarts": 9, "nProcPerNode": 8,
        "metrics": [{"type": "Resource"}],
    }  # fmt: skip
    loaded = formats.load(manifest("PyTorchJob", {"Worker": (3, "Never")}, more={"elasticPolicy": elastic}))
    (worker,) = loaded.spec.tasks
    assert (worker.min_available, worker.replicas, loaded.spec.gang_minimum) == (2, 3, 2)
    assert worker.env == {"PET_MAX_RESTARTS": "9"}
    assert loaded.spec.plugins == {"pytorch": ("--master=worker", "--nnodes=2:4", "--nproc-per-node=8")}
    assert [warning.partition(":")[0] for warning in loaded.warnings] == [
        "spec.elasticPolicy.rdzvHost",
        "spec.elasticPolicy.rdzvBackend",
        "spec.elasticPolicy.metrics[0]",
        "spec.pytorchReplicaSpecs",
    ]
    assert "You can scale the job up" in loaded.warnings[-1]


def test_metric_of_gpus_in_an_elastic_policy_scales_the_workers():
    target = {"type": "AverageValue", "averageValue": "70"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "DCGM_FI_DEV_GPU_UTIL"}, "target": target}}
    elastic = {"minReplicas": 1, "maxReplicas": 4, "metrics": [metric]}
    text = manifest("PyTorchJob", {"Worker": (2, "OnFailure")}, more={"elasticPolicy": elastic})
    document = yaml.safe_load(text)
    pod = document["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    (worker,) = formats.load(yaml.safe_dump(document)).spec.tasks
    assert worker.autoscaling == Autoscaling(max_replicas=4, gpu_utilization=70)


@pytest.mark.parametrize(
    ("roles", "elastic", "size", "nodes", "warning_count"),
    [
        ({"Worker": 2}, {"minReplicas": 1, "maxReplicas": 3}, (1, 2), "1:3", 1),
        ({"Master": 1, "Worker": 2}, {"minReplicas": 1, "maxReplicas": 3}, (1, 2), "2:4", 1),
        ({"Worker": 2}, {"maxReplicas": 3}, (None, 2), "2:3", 1),
        ({"Worker": 2}, {"minReplicas": 1}, (1, 2), "1:2", 0),
        ({"Worker": 5}, {"minReplicas": 1, "maxReplicas": 3}, (1, 3), "1:3", 1),
        ({"Worker": 1}, {"minReplicas": 2, "maxReplicas": 2}, (2, 2), "2:2", 1),
        ({"Worker": None}, {"minReplicas": 2, "maxReplicas": 2, "nProcPerNode": 1}, (2, 2), "2:2", 0),
        ({"Worker": 2}, {"minReplicas": 1, "maxReplicas": 3, "nProcPerNode": 2}, (1, 2), "1:3", 1),
    ],
)
def test_elastic_pytorchjob_survives_a_round_trip(roles, elastic, size, nodes, warning_count):
    replicas = {role: (count, "OnFailure") for role, count in roles.items()}
    more = {"elasticPolicy": elastic, "runPolicy": {"backoffLimit": 4}}
    loaded = formats.load(manifest("PyTorchJob", replicas, more=more))
    worker = loaded.spec.task("worker")
    assert ((worker.min_available, worker.replicas), len(loaded.warnings)) == (size, warning_count)
    assert f"--nnodes={nodes}" in loaded.spec.plugins["pytorch"]
    written = formats.write(loaded.spec, PYTORCHJOB)
    assert (written.notes, formats.load(written.text).spec.tasks) == ((), loaded.spec.tasks)
    assert ("nProcPerNode: 2" in written.text, "nProcPerNode" in written.text) == (
        elastic.get("nProcPerNode") == 2,
    ) * 2


@pytest.mark.parametrize(
    ("roles", "success_policy", "expected"),
    [
        ({"PS": 1, "Worker": 3}, None, "FirstReplica"),
        ({"Worker": 3}, "", "FirstReplica"),
        ({"PS": 1, "Worker": 3}, "AllWorkers", "AllReplicas"),
        ({"Chief": 1, "Worker": 3}, None, "AllReplicas"),
        ({"Chief": 1, "Worker": 3}, "ChiefWorker", "AllReplicas"),
        ({"Master": 1, "Worker": 3}, "", "AllReplicas"),
        ({"Worker": 1}, None, "AllReplicas"),
    ],
)
def test_tfjob_without_a_chief_completes_with_its_first_worker(roles, success_policy, expected):
    text = manifest("TFJob", {role: (n, "") for role, n in roles.items()}, more={"successPolicy": success_policy})
    loaded = formats.load(text)
    assert loaded.warnings == ()
    assert {task.name: task.success_policy for task in loaded.spec.tasks} == {
        role.lower(): expected if role == "Worker" else "AllReplicas" for role in roles
    }
    written = formats.write(loaded.spec, TFJOB)
    assert (written.notes, formats.load(written.text).spec) == ((), loaded.spec)
    assert ("successPolicy" in written.text) == (expected == "AllReplicas" and not {"Chief", "Master"} & set(roles))


@pytest.mark.parametrize(("policy", "warning_count"), [("", 0), ("AllWorkers", 0), ("ChiefWorker", 1)])
def test_unsupported_success_policy_is_reported(policy, warning_count):
    text = manifest("TFJob", {"Worker": (2, "")}, more={"successPolicy": policy})
    assert len(formats.load(text).warnings) == warning_count


@pytest.mark.parametrize(
    ("old", "new", "path", "sentence"),
    [
        ("restartPolicy: ExitCode", "restartPolicy: Sometimes", "Worker.restartPolicy", "is not one of Always"),
        ("    Worker:", "    Workers:", "pytorchReplicaSpecs.Workers", "Did you mean “Worker”?"),
        ("replicas: 2", "replicas: two", "Worker.replicas", "an integer"),
        (
            "command: [python, mnist.py], args",
            "args",
            "Worker.template.spec.containers[0].command",
            "Only a task with an image can run without",
        ),
        ("backoffLimit: 5", "backoffLimit: x", "spec.runPolicy.backoffLimit", "an integer"),
        ("backoffLimit: 5", "backoffLimit: -1", "spec.runPolicy.backoffLimit", "at least 1"),
        ("minAvailable: 3", "minAvailable: 9", "spec.runPolicy.schedulingPolicy.minAvailable", "never be reached"),
        ("containerPort: 4000", "containerPort: x", "spec.pytorchReplicaSpecs[0]", "must be a port"),
        ("kubeflow.org/v1", "kubeflow.org/v2", "apiVersion", "For a PyTorchJob this must be kubeflow.org/v1, not"),
    ],
)
def test_problem_has_its_path_in_the_manifest(old, new, path, sentence):
    assert old in PYTORCH
    with pytest.raises(Invalid) as raised:
        formats.load(PYTORCH.replace(old, new, 1))
    assert [p for p in raised.value.problems if p.path.endswith(path) and sentence in p.message], raised.value.problems


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("schedulerName: volcano", "schedulerName: yunikorn", "spec.schedulerName"),
        ("containerPort: 4000", "containerPort: 4000, hostIP: 10.0.0.1", "spec.containers[1].ports[0].hostIP"),
        ("containerPort: 4000", "containerPort: 4000, hostPort: 4000", None),
        ("containerPort: 4000", "containerPort: 4000, range: 9", "spec.containers[1].ports[0].range"),
        ("containerPort: 4000", "containerPort: 4000, protocol: TCP", None),
        ("schedulerName: volcano", "schedulerName: hekla", None),
    ],
)
def test_unsupported_fields_of_a_pod_are_reported(old, new, path):
    before = formats.load(PYTORCH).warnings
    more = [warning for warning in formats.load(PYTORCH.replace(old, new, 1)).warnings if warning not in before]
    expected = [f"spec.pytorchReplicaSpecs.Master.template.{path}"] if path else []
    assert [warning.partition(": ignored")[0] for warning in more] == expected


def test_too_high_backoff_limit_is_reported():
    loaded = formats.load(PYTORCH.replace("backoffLimit: 5", "backoffLimit: 5000"))
    assert loaded.spec.max_retry == 1000
    assert any("backoffLimit: ignored: a job restarts at most 1000 times" in note for note in loaded.warnings)


@pytest.mark.parametrize(
    ("kind", "replicas", "policy", "expected", "warning_count"),
    [
        ("PyTorchJob", {"Worker": (2, "OnFailure")}, {}, 1000, 1),
        ("PyTorchJob", {"Worker": (2, "")}, {}, 1000, 1),
        ("TFJob", {"Chief": (1, "Never"), "Worker": (2, "ExitCode")}, {}, 1000, 2),
        ("PyTorchJob", {"Worker": (2, "OnFailure")}, {"backoffLimit": 5}, 5, 0),
        ("PyTorchJob", {"Worker": (2, "OnFailure")}, {"backoffLimit": 0}, 3, 0),
        ("PyTorchJob", {"Worker": (2, "Never")}, {}, 3, 0),
    ],
)
def test_restarts_without_a_backoff_limit_have_the_highest_limit(kind, replicas, policy, expected, warning_count):
    loaded = formats.load(manifest(kind, replicas, more={"runPolicy": policy}))
    assert (loaded.spec.max_retry, len(loaded.warnings)) == (expected, warning_count)
    message = "spec.runPolicy.backoffLimit: not set. Kubeflow has no limit. Here a job restarts at most 1000 times."
    assert (message in loaded.warnings) == (expected == 1000)


def test_v2beta1_launcher_restarts_by_default():
    replicas = {"Launcher": (1, ""), "Worker": (2, "")}
    assert policies(manifest("MPIJob", replicas, version="kubeflow.org/v2beta1")) == [
        [FAILED_RESTARTS, LEADS],
        [FAILED_ENDS],
    ]
    assert formats.load(manifest("MPIJob", replicas, version="kubeflow.org/v2beta1")).spec.max_retry == 6


@pytest.mark.parametrize(
    ("field", "value", "warning_count"),
    [
        ("mpiImplementation", "OpenMPI", 0),
        ("mpiImplementation", "Intel", 1),
        ("sshAuthMountPath", "/etc/ssh/keys", 1),
        ("launcherCreationPolicy", "WaitForWorkersReady", 1),
        ("slotsPerWorker", 1, 0),
        ("runLauncherAsWorker", True, 1),
        ("cleanPodPolicy", "None", 1),
    ],
)
def test_unsupported_mpi_fields_are_reported(field, value, warning_count):
    replicas = {"Launcher": (1, ""), "Worker": (2, "")}
    warnings = formats.load(manifest("MPIJob", replicas, more={field: value})).warnings
    assert len([warning for warning in warnings if warning.startswith(f"spec.{field}: ignored")]) == warning_count


def test_mpi_workers_without_a_command_run_the_agent():
    before, launcher, worker = manifest(
        "MPIJob", {"Launcher": (1, ""), "Worker": (2, "")}, more={"slotsPerWorker": 4}
    ).split("command:\n")
    loaded = formats.load(f"{before}command:\n{launcher}image: x\n{worker.partition('- run')[2]}")
    assert loaded.warnings == ()
    assert loaded.spec.plugins == {"mpi": ("--master=launcher", "--slots=4")}
    assert loaded.spec.task("worker").command[-1].endswith("mpi_agent.py")


def test_paddle_master_beside_workers_is_reported():
    warnings = formats.load(manifest("PaddleJob", {"Master": (1, "Never"), "Worker": (2, "Never")})).warnings
    assert [warning.partition(":")[0] for warning in warnings] == ["spec.paddleReplicaSpecs.Master"]


def test_missing_job_plugin_is_reported(monkeypatch):
    monkeypatch.setattr("hekla.domain.frameworks.load_frameworks", dict)
    findings = Findings()
    assert ManifestReader(Companions(findings), findings).plugin("jax", {}, "spec") == {}
    assert findings.ignored == ["spec: ignored: unknown job plugin jax, so pods get no information about each other."]


TRAINJOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: fine-tune
  annotations: {scheduling.volcano.sh/queue-name: research, hekla.io/environment: torch}
spec:
  runtimeRef: {name: torch-distributed, kind: ClusterTrainingRuntime}
  initializer: {dataset: {storageUri: hf://x}}
  suspend: true
  trainer:
    image: torch
    command: [torchrun]
    args: [train.py]
    numNodes: 3
    numProcPerNode: 4
    resourcesPerNode: {requests: {cpu: 2}, limits: {nvidia.com/gpu: 4}}
    env: [{name: LR, value: "0.1"}]
"""


def test_trainjob_is_a_gang_of_nodes():
    loaded = formats.load(TRAINJOB)
    node = {
        "name": "node",
        "replicas": 3,
        "image": "torch",
        "command": ["torchrun", "train.py"],
        "environment": "torch",
        "resources": {"nvidia.com/gpu": "4", "cpu": "2"},
        "env": {"LR": "0.1"},
        "policies": [FAILED_RESTARTS],
    }
    assert loaded.spec.document() == {
        "name": "fine-tune",
        "queue": "research",
        "max_retry": 6,
        "plugins": {"pytorch": ["--master=node", "--nnodes=3", "--nproc-per-node=4"]},
        "tasks": [node],
    }
    assert [warning.partition(":")[0] for warning in loaded.warnings] == ["spec.suspend", "spec.initializer"]


@pytest.mark.parametrize(
    ("runtime", "plugins", "warning_count"),
    [("jax-distributed", {"jax": ("--worker=node",)}, 0), ("our-own", {}, 1), ("deepspeed-distributed", {}, 1)],
)
def test_runtime_name_selects_the_job_plugin(runtime, plugins, warning_count):
    loaded = formats.load(TRAINJOB.replace("torch-distributed", runtime))
    assert loaded.spec.plugins == plugins
    assert (
        len([warning for warning in loaded.warnings if warning.startswith("spec.runtimeRef.name: ignored")])
        == warning_count
    )


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("numNodes: 3", "numNodes: x", "spec.trainer.numNodes"),
        ("    image: torch\n    command: [torchrun]\n", "", "spec.trainer.command"),
        ("cpu: 2", "cpu: x", "spec.trainer.resourcesPerNode.requests.cpu"),
        ("numNodes: 3", "numNode: 3", "spec.trainer.numNode"),
    ],
)
def test_problem_of_a_trainer_has_its_path(old, new, path):
    with pytest.raises(Invalid) as raised:
        formats.load(TRAINJOB.replace(old, new))
    assert [problem.path for problem in raised.value.problems] == [path]
