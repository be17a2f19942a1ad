"""Reading FlinkDeployments: job manager and task managers are one gang, and each field has an effect or a warning."""

import pytest

from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.resources import Resources

JAR = "local:///opt/flink/usrlib/words.jar"
RESTARTS = "spec: Flink restarts its task managers without a limit. Here a job restarts at most 1000 times."


def deployment(job=None, manager=None, workers=None, settings=None, annotations=None, **spec):
    fields = {
        "image": "flink:1.20",
        "flinkVersion": "v1_20",
        "flinkConfiguration": settings or {},
        "jobManager": {"resource": {"memory": "2048m", "cpu": 1}, **(manager or {})},
        "taskManager": {"resource": {"memory": "2g", "cpu": 0.5}, **(workers or {})},
        **({"job": job} if job else {}),
    }
    metadata = {"name": "words", "annotations": annotations or {}}
    document = {"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "metadata": metadata}
    return yaml_text.write([{**document, "spec": {**fields, **spec}}])


def line(spec, name):
    return spec.task(name).command[2]


def actions(task):
    return [(*map(str, policy.events), str(policy.action)) for policy in task.policies]


def problems(text):
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    return [f"{problem.path}: {problem.message}" for problem in raised.value.problems]


def test_application_is_one_gang_with_slots_for_its_parallelism():
    settings = {"taskmanager.numberOfTaskSlots": "2"}
    loaded = formats.load(deployment({"jarURI": JAR, "parallelism": 5, "upgradeMode": "stateless"}, settings=settings))
    spec = loaded.spec
    assert [(task.name, task.replicas) for task in spec.tasks] == [("jobmanager", 1), ("taskmanager", 3)]
    assert (spec.gang_minimum, dict(spec.plugins), loaded.warnings) == (4, {"flink": ()}, (RESTARTS,))
    assert spec.admission_resources == Resources.parse({"cpu": "2500m", "memory": "8Gi"})
    assert actions(spec.tasks[0]) == [("PodFailed", "TerminateJob"), ("TaskCompleted", "CompleteJob")]
    assert actions(spec.tasks[1]) == [("PodFailed", "RestartPod")]


def test_programs_get_the_configuration_and_their_memory():
    job = {"jarURI": JAR, "entryClass": "org.Words", "args": ["--in", "a b"], "parallelism": 1}
    spec = formats.load(deployment(job, settings={"rest.port": 8081, "x.y": True, "a": "b c"})).spec
    manager, worker = line(spec, "jobmanager"), line(spec, "taskmanager")
    assert manager.startswith("exec ${FLINK_HOME:+$FLINK_HOME/bin/}standalone-job.sh start-foreground")
    assert manager.endswith(
        "-Drest.port=8081 -Dx.y=true -D'a=b c' -Dparallelism.default=1 -Djobmanager.memory.process.size=2048m "
        "--job-classname org.Words --in 'a b'"
    )
    assert worker.endswith("-Drest.port=8081 -Dx.y=true -D'a=b c' -Dtaskmanager.memory.process.size=2048m")
    assert "-Djobmanager.rpc.address=$JOB_MANAGER_RPC_ADDRESS" in manager.split()
    assert "-Djobmanager.rpc.address=$JOB_MANAGER_RPC_ADDRESS" in worker.split()


def test_savepoint_is_restored():
    job = {"jarURI": JAR, "initialSavepointPath": "s3://a/b", "allowNonRestoredState": True}
    assert line(formats.load(deployment(job)).spec, "jobmanager").endswith(
        "--fromSavepoint s3://a/b --allowNonRestoredState"
    )


def test_program_elsewhere_in_the_image_is_linked_where_flink_looks():
    spec = formats.load(deployment({"jarURI": "local:///opt/flink/examples/a b.jar"})).spec
    assert line(spec, "jobmanager").startswith(
        "mkdir -p /opt/flink/usrlib && ln -sf '/opt/flink/examples/a b.jar' /opt/flink/usrlib/ && exec "
    )


def test_without_a_job_the_cluster_accepts_programs():
    spec = formats.load(deployment(workers={"replicas": 2})).spec
    assert "jobmanager.sh start-foreground" in line(spec, "jobmanager")
    assert (spec.task("taskmanager").replicas, actions(spec.tasks[0])) == (2, [("PodFailed", "TerminateJob")])


def test_port_is_that_of_the_job_plugin():
    assert dict(formats.load(deployment(settings={"jobmanager.rpc.port": 7000})).spec.plugins) == {
        "flink": ("--port=7000",)
    }


def test_templates_of_pods_are_used():
    main = {"name": "flink-main-container", "env": [{"name": "A", "value": "b"}]}
    both = {"spec": {"containers": [main], "nodeSelector": {"disk": "ssd"}}}
    own = {"podTemplate": {"spec": {"tolerations": [{"key": "flink"}]}}}
    loaded = formats.load(deployment(podTemplate=both, workers=own))
    manager, worker = loaded.spec.tasks
    assert (dict(manager.node_selector), dict(manager.env), manager.image) == (
        {"disk": "ssd"},
        {"A": "b"},
        "flink:1.20",
    )
    assert (dict(worker.env), worker.tolerations[0].key, worker.image) == ({}, "flink", "flink:1.20")
    assert loaded.warnings[0].startswith("spec.podTemplate: ignored: spec.taskManager has a pod template of its own")


def test_annotation_sets_the_queue():
    annotations = {"scheduling.volcano.sh/queue-name": "vision", "hekla.io/priority-class": "high"}
    spec = formats.load(deployment(annotations=annotations)).spec
    assert (spec.queue, spec.priority_class) == ("vision", "high")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (deployment(manager={"replicas": 2}), "spec.jobManager.replicas: A job has one job manager."),
        (deployment({"jarURI": "https://a/b.jar"}), "spec.job.jarURI: Must be a file in the image"),
        (deployment({"jarURI": "local://a.jar"}), "spec.job.jarURI: Must be a file in the image"),
        (deployment({"parallelism": 10**9}), "spec.job.parallelism: "),
        (deployment({"parallelism": "many"}), "spec.job.parallelism: "),
        (
            deployment(settings={"taskmanager.numberOfTaskSlots": "0"}),
            "spec.flinkConfiguration.taskmanager.numberOfTask",
        ),
        (
            deployment(settings={"taskmanager.numberOfTaskSlots": "x"}),
            "spec.flinkConfiguration.taskmanager.numberOfTask",
        ),
        (deployment(settings={"a": {"b": "c"}}), "spec.flinkConfiguration.a: Must be a string"),
        (deployment(settings={"a": "x" * 70_000}), "spec"),
        (deployment(settings={"jobmanager.rpc.port": "x"}), "spec.flinkConfiguration"),
        (deployment(manager={"resource": {"memory": "x"}}), "spec.jobManager.resource.memory: Must be an amount"),
        (deployment(manager={"resource": {"cpu": "x"}}), "spec.jobManager.resource.cpu: "),
        (deployment(podTemplate={"spec": {"hostNetwork": True}}), "spec.podTemplate.spec.hostNetwork: "),
        (deployment(podTemplate={"spec": {"containers": "x"}}), "spec.podTemplate.spec.containers: Must be a list"),
        (deployment(podTemplate=[1]), "spec.podTemplate: Must be a mapping"),
        (deployment(workers={"replicas": -1}), "spec.taskManager.replicas: "),
    ],
)
def test_what_cannot_run_is_refused_at_its_field(text, problem):
    assert any(one.startswith(problem) for one in problems(text)), problems(text)


def test_fields_without_effect_are_reported():
    job = {"jarURI": JAR, "state": "suspended"}
    settings = {"kubernetes.operator.savepoint.history.max.age": "1 h"}
    found = formats.load(deployment(job, settings=settings, ingress={"template": "x"}, serviceAccount="flink")).warnings
    assert {warning.partition(":")[0] for warning in found} == {
        "spec.flinkConfiguration.kubernetes.operator.savepoint.history.max.age",
        "spec.job.state",
        "spec",
        "spec.ingress",
        "spec.serviceAccount",
    }
