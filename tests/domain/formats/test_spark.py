"""Reading SparkApplications: driver and executors are one gang, and each field has an effect or a warning."""

import pytest

from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.resources import Resources

PROGRAM = "local:///opt/spark/examples/jars/spark-examples.jar"


def application(driver=None, executor=None, **spec):
    fields = {"type": "Scala", "mode": "cluster", "image": "apache/spark:3.5.1", "mainApplicationFile": PROGRAM}
    roles = {"driver": {"memory": "512m", **(driver or {})}, "executor": {"memory": "1g", **(executor or {})}}
    return yaml_text.write(
        [
            {
                "apiVersion": "sparkoperator.k8s.io/v1beta2",
                "kind": "SparkApplication",
                "metadata": {"name": "pi"},
                "spec": {**fields, **roles, **spec},
            }
        ]
    )


def submitted(spec):
    """The arguments of spark-submit."""
    return spec.task("driver").command[2].partition("spark-submit ")[2].split()


def problems(text):
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    return [f"{problem.path}: {problem.message}" for problem in raised.value.problems]


def actions(task):
    return [(*map(str, policy.events), str(policy.action)) for policy in task.policies]


def test_driver_and_executors_are_one_gang_in_the_queue_of_the_options():
    options = {"queue": "vision", "priorityClassName": "high", "resources": {"cpu": "4", "memory": "4Gi"}}
    loaded = formats.load(
        application(executor={"instances": 3, "cores": 2}, batchScheduler="volcano", batchSchedulerOptions=options)
    )
    spec = loaded.spec
    assert [(task.name, task.replicas) for task in spec.tasks] == [("driver", 1), ("executor", 3)]
    assert (spec.gang_minimum, spec.queue, spec.priority_class) == (4, "vision", "high")
    assert spec.admission_resources == Resources.parse({"cpu": "4", "memory": "4Gi"})
    assert (dict(spec.plugins), loaded.warnings) == ({"spark": ()}, ())


def test_without_resources_the_whole_gang_must_fit():
    """Memory, an overhead of at least 384 MiB, and 256 MiB for the master or the worker."""
    spec = formats.load(application(driver={"cores": 1}, executor={"instances": 2, "cores": 2, "memory": "8g"})).spec
    assert dict(spec.task("driver").resources) == {"cpu": "1", "memory": "1152Mi"}
    assert dict(spec.task("executor").resources) == {"cpu": "2", "memory": "9268Mi"}
    assert spec.admission_resources == Resources.parse({"cpu": "5", "memory": f"{1152 + 2 * 9268}Mi"})


@pytest.mark.parametrize(
    ("more", "memory"),
    [
        ({"type": "Python"}, 4096 + 1639 + 256),
        ({"memoryOverheadFactor": "0.5"}, 4096 + 2048 + 256),
        ({"executor": {"memory": "4g", "memoryOverhead": "1g"}}, 4096 + 1024 + 256),
        ({"executor": {"memory": "4096"}}, 4096 + 410 + 256),
    ],
)
def test_overhead_of_memory_is_that_of_spark(more, memory):
    spec = formats.load(application(**{"executor": {"memory": "4g"}, **more})).spec
    assert spec.task("executor").resources["memory"] == f"{memory}Mi"


def test_driver_starts_the_master_and_submits_the_program():
    deps = {"packages": ["a:b:1", "c:d:2"], "pyFiles": ["x.py"]}
    conf = {"spark.eventLog.enabled": True, "spark.kubernetes.namespace": "x"}
    loaded = formats.load(
        application(mainClass="org.Pi", arguments=["10", "a b"], sparkConf=conf, hadoopConf={"k": "v"}, deps=deps)
    )
    assert (
        ".master.Master --host $SPARK_MASTER_HOST --port $SPARK_MASTER_PORT & exec" in loaded.spec.tasks[0].command[2]
    )
    words = submitted(loaded.spec)
    assert words[:4] == ["--master", "$MASTER", "--conf", "spark.driver.host=$SPARK_MASTER_HOST"]
    assert words[4:] == [
        *("--name=pi", "--class=org.Pi", "--driver-memory=512m", "--executor-memory=1024m", "--executor-cores=1"),
        *("--conf=spark.eventLog.enabled=true", "--conf=spark.hadoop.k=v", "--py-files=x.py", "--packages=a:b:1,c:d:2"),
        *(PROGRAM, "10", "'a", "b'"),
    ]
    assert loaded.warnings == (
        "spec.sparkConf.spark.kubernetes.namespace: ignored: the platform creates the pods and connects them.",
    )


def test_executors_are_workers_of_their_size():
    gpu = {"name": "nvidia.com/gpu", "quantity": 1}
    executor = {
        "cores": 2,
        "coreRequest": "1500m",
        "gpu": gpu,
        "env": [{"name": "A", "value": "b"}],
        "envVars": {"C": "d"},
    }
    task = formats.load(application(executor=executor)).spec.task("executor")
    assert ".worker.Worker --webui-port 0 $MASTER" in task.command[2]
    assert (task.resources["cpu"], task.resources["nvidia.com/gpu"]) == ("1500m", "1")
    assert {"SPARK_WORKER_CORES": "2", "SPARK_WORKER_MEMORY": "1024m", "A": "b", "C": "d"}.items() <= task.env.items()


def test_pods_keep_their_placement_and_volumes():
    volumes = [{"name": "scratch", "emptyDir": {}}]
    executor = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spark"}],
        "labels": {"team": "x"},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "podSecurityContext": {"fsGroup": 185},
        "securityContext": {"runAsUser": 185},
    }
    loaded = formats.load(
        application(executor=executor, volumes=volumes, nodeSelector={"zone": "a"}, imagePullSecrets=["registry"])
    )
    driver, task = loaded.spec.tasks
    assert (dict(driver.node_selector), dict(task.node_selector)) == ({"zone": "a"}, {"disk": "ssd"})
    assert (task.tolerations[0].key, dict(task.labels), task.pull_secrets) == ("spark", {"team": "x"}, ("registry",))
    assert [mount.mount_path for mount in task.volume_mounts] == ["/scratch"]
    assert (task.security_context.fs_group, task.security_context.run_as_user) == (185, 185)
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("policy", "action", "retries"),
    [
        ({"type": "Never"}, "TerminateJob", 1000),
        ({"type": "OnFailure"}, "TerminateJob", 1000),
        ({"type": "OnFailure", "onFailureRetries": 3}, "RestartJob", 3),
        ({"type": "Always"}, "RestartJob", 1000),
    ],
)
def test_failed_driver_ends_or_restarts_the_application(policy, action, retries):
    spec = formats.load(application(restartPolicy=policy)).spec
    assert actions(spec.task("driver")) == [("PodFailed", action), ("TaskCompleted", "CompleteJob")]
    assert actions(spec.task("executor")) == [("PodFailed", "RestartPod")]
    assert spec.max_retry == retries


def test_dynamic_allocation_needs_its_minimum_of_executors():
    dynamic = {"enabled": True, "initialExecutors": 2, "minExecutors": 1, "maxExecutors": 6}
    loaded = formats.load(application(executor={"instances": 2}, dynamicAllocation=dynamic))
    task = loaded.spec.task("executor")
    assert (task.replicas, task.min_available, loaded.spec.gang_minimum) == (6, 1, 2)
    assert loaded.warnings[0].startswith("spec.dynamicAllocation.enabled: ignored: executors beyond minExecutors start")
    fixed = formats.load(application(executor={"instances": 2}, dynamicAllocation={"enabled": False})).spec
    assert (fixed.task("executor").replicas, fixed.gang_minimum) == (2, 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (application(mainApplicationFile=None), "spec.mainApplicationFile: Required."),
        (application(type="Basic"), "spec.type: "),
        (application(restartPolicy={"type": "Often"}), "spec.restartPolicy.type: "),
        (application(driver={"memory": "much"}), "spec.driver.memory: Must be an amount of memory"),
        (application(driver={"memory": "9" * 16}), "spec.driver.memory: Must be an amount of memory"),
        (application(driver={"memory": "99999999999t"}), "spec.driver.memory: "),
        (application(executor={"cores": "many"}), "spec.executor.cores: "),
        (application(executor={"instances": 10**6}), "spec.executor.instances: "),
        (application(executor={"gpu": {"name": "a b", "quantity": 1}}), "spec.executor"),
        (application(driver={"hostNetwork": True}), "spec.driver.hostNetwork: Jobs have no access"),
        (application(memoryOverheadFactor="lots"), "spec.memoryOverheadFactor: Must be a number"),
        (application(memoryOverheadFactor="nan"), "spec.memoryOverheadFactor: Must be a number"),
        (application(batchSchedulerOptions={"queue": "No"}), "spec.batchSchedulerOptions.queue: "),
        (application(batchSchedulerOptions={"resources": {"cpu": "?"}}), "spec.batchSchedulerOptions.resources.cpu: "),
        (application(arguments=["x" * 70_000]), "spec"),
        (application(sparkConf=[1]), "spec.sparkConf: Must be a mapping"),
        (application().replace("driver:\n    memory: 512m", "driver: [1]"), "spec.driver: Must be a mapping"),
    ],
)
def test_what_cannot_run_is_refused_at_its_field(text, problem):
    assert any(one.startswith(problem) for one in problems(text)), problems(text)


def test_fields_without_effect_are_reported():
    found = formats.load(
        application(
            driver={"serviceAccount": "spark", "coreLimit": "1200m"},
            monitoring={"exposeDriverMetrics": True},
            restartPolicy={"type": "OnFailure", "onFailureRetryInterval": 10},
            dynamicAllocation={"enabled": True, "shuffleTrackingTimeout": 5},
        )
    ).warnings
    assert {warning.partition(":")[0] for warning in found} == {
        "spec.driver.serviceAccount",
        "spec.driver.coreLimit",
        "spec.monitoring",
        "spec.restartPolicy.onFailureRetryInterval",
        "spec.dynamicAllocation.enabled",
    }
