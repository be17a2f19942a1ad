"""Reading RayClusters and RayJobs: the gang, the commands of KubeRay, and each field's effect or warning."""

import pytest

from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.resources import Resources

OWN_ADDRESS = "${HEKLA_POD_ADDRESS:+--node-ip-address=$HEKLA_POD_ADDRESS}"
WORKER = f"exec ray start --block {OWN_ADDRESS} --address=$RAY_ADDRESS"
RESTARTS = {"events": ["PodFailed"], "action": "RestartPod"}


def group(parameters=None, container=None, **fields):
    one = {"name": "ray", "image": "ray:2", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
    template = {"spec": {"containers": [one | (container or {})]}}
    return {"rayStartParams": parameters or {}, "template": template, **fields}


def cluster(*workers, head=None, **spec):
    return {"rayVersion": "2.46.0", "headGroupSpec": head or group(), "workerGroupSpecs": list(workers), **spec}


def ray(kind, spec, **metadata):
    return yaml_text.write(
        [{"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "count", **metadata}, "spec": spec}]
    )


def ray_job(entrypoint="python count.py", own=None, **spec):
    return ray("RayJob", {"entrypoint": entrypoint, "rayClusterSpec": cluster() if own is None else own, **spec})


def command(spec, name):
    shell, option, line = spec.task(name).command
    assert (shell, option) == ("sh", "-c")
    return line


def problems(text):
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    return [f"{problem.path}: {problem.message}" for problem in raised.value.problems]


def test_cluster_is_one_gang_whose_head_comes_first():
    gpus = {"resources": {"limits": {"cpu": 2, "nvidia.com/gpu": 1}}}
    workers = group(groupName="small", replicas=2), group(groupName="gpu", replicas=3, container=gpus)
    loaded = formats.load(ray("RayCluster", cluster(*workers)))
    spec = loaded.spec
    assert [(task.name, task.replicas, task.min_available) for task in spec.tasks] == [
        ("head", 1, None),
        ("small", 2, None),
        ("gpu", 3, None),
    ]
    assert (spec.gang_minimum, spec.max_retry, dict(spec.plugins)) == (6, 1000, {"ray": ("--worker=small",)})
    assert spec.admission_resources == Resources.parse({"cpu": "10500m", "memory": "3Gi", "nvidia.com/gpu": "3"})
    assert all(task.model_dump(mode="json")["policies"][0]["action"] == "RestartPod" for task in spec.tasks)
    assert command(spec, "small") == f"{WORKER} --num-cpus=2 --memory=1073741824"
    assert command(spec, "gpu") == f"{WORKER} --num-cpus=2 --num-gpus=1"
    assert list(loaded.warnings) == [
        "spec: Ray restarts its pods without a limit. Here a job restarts at most 1000 times."
    ]


def test_parameters_become_arguments_of_ray_start():
    parameters = {
        "port": "7000",
        "num-cpus": "0",
        "no-monitor": "true",
        "verbose": "false",
        "include-dashboard": "false",
    }
    spec = formats.load(ray("RayCluster", cluster(head=group(parameters)))).spec
    line = command(spec, "head")
    assert "--port=7000" in line.split()
    assert line.endswith("--num-cpus=0 --no-monitor --include-dashboard=false --memory=1073741824")
    assert dict(spec.plugins) == {"ray": ("--port=7000",)}


def test_usual_parameters_of_pods_have_no_effect_and_others_are_reported():
    usual = {"head": "true", "block": "true", "dashboard-host": "0.0.0.0"}
    assert len(formats.load(ray("RayCluster", cluster(head=group(usual)))).warnings) == 1
    loaded = formats.load(ray("RayCluster", cluster(head=group({"node-ip-address": "$MY_POD_IP"}))))
    assert loaded.warnings[1].startswith("spec.headGroupSpec.rayStartParams.node-ip-address: ignored: pods listen at")


def test_autoscaled_group_needs_its_minimum_and_grows_to_its_maximum():
    elastic = group(groupName="w", replicas=2, minReplicas=1, maxReplicas=5)
    fixed = formats.load(ray("RayCluster", cluster(elastic))).spec
    assert (fixed.task("w").replicas, fixed.gang_minimum) == (2, 3)
    loaded = formats.load(ray("RayCluster", cluster(elastic, enableInTreeAutoscaling=True)))
    assert (loaded.spec.task("w").replicas, loaded.spec.task("w").min_available, loaded.spec.gang_minimum) == (5, 1, 2)
    assert "are preempted first" in loaded.warnings[1]
    idle = group(groupName="w", maxReplicas=2**31 - 1)
    loaded = formats.load(ray("RayCluster", cluster(idle, enableInTreeAutoscaling=True))).spec
    assert (loaded.task("w").replicas, loaded.gang_minimum) == (0, 1)


def test_replicas_are_within_their_range():
    loaded = formats.load(ray("RayCluster", cluster(group(groupName="w", replicas=9, maxReplicas=5))))
    assert loaded.spec.task("w").replicas == 5
    assert loaded.warnings[1].startswith("spec.workerGroupSpecs[0].replicas: the job starts with 5 workers")


def test_replica_of_several_hosts_is_a_partition_that_restarts_as_a_whole():
    task = formats.load(ray("RayCluster", cluster(group(groupName="w", replicas=2, numOfHosts=4)))).spec.task("w")
    assert (task.replicas, task.partition_size, task.min_partitions) == (8, 4, 2)
    assert [str(policy.action) for policy in task.policies] == ["RestartPartition"]


@pytest.mark.parametrize(
    ("container", "line"),
    [
        ({"args": ["pip install x"]}, f"pip install x && {WORKER} --num-cpus=2 --memory=1073741824"),
        ({"command": ["sh", "-c", "mine; ray start --block"]}, "mine; ray start --block"),
    ],
)
def test_command_of_a_container_runs_before_or_starts_ray_itself(container, line):
    loaded = formats.load(ray("RayCluster", cluster(group(groupName="w", replicas=1, container=container))))
    assert command(loaded.spec, "w") == line
    assert len(loaded.warnings) == 1


def test_annotation_leaves_commands_as_they_are():
    own = group(container={"command": ["mine"]})
    annotations = {"ray.io/overwrite-container-cmd": "true"}
    spec = formats.load(ray("RayCluster", cluster(head=own), annotations=annotations)).spec
    assert spec.task("head").command == ("mine",)


def test_labels_of_volcano_set_queue_and_priority():
    labels = {
        "ray.io/scheduler-name": "volcano",
        "volcano.sh/queue-name": "vision",
        "ray.io/priority-class-name": "high",
    }
    loaded = formats.load(ray("RayCluster", cluster(), labels={**labels, "team": "x"}))
    assert (loaded.spec.queue, loaded.spec.priority_class) == ("vision", "high")
    assert loaded.warnings[0] == "metadata.labels.team: ignored."
    assert problems(ray("RayCluster", cluster(), labels={"volcano.sh/queue-name": "No"}))[0].startswith(
        "metadata.labels.volcano.sh/queue-name: "
    )


def test_job_submits_its_entrypoint_and_completes_with_it():
    runtime = "env_vars: {A: '1'}"
    fields = {"jobId": "count-1", "entrypointNumCpus": 1, "runtimeEnvYAML": runtime, "metadata": {"by": "me"}}
    loaded = formats.load(ray_job("python count.py 'a b'", shutdownAfterJobFinishes=True, **fields))
    spec = loaded.spec
    submitter = spec.task("submitter")
    line = command(spec, "submitter")
    assert line.startswith("until ray job list >/dev/null 2>&1; do sleep 2; done; exec ray job submit ")
    assert line.endswith(
        "--submission-id=count-1 --entrypoint-num-cpus=1 "
        """'--runtime-env-json={"env_vars": {"A": "1"}}' '--metadata-json={"by": "me"}' -- python count.py 'a b'"""
    )
    assert (submitter.image, dict(submitter.resources)) == ("ray:2", {"cpu": "500m", "memory": "200Mi"})
    assert [(str(policy.events[0]), str(policy.action)) for policy in submitter.policies] == [
        ("PodFailed", "TerminateJob"),
        ("TaskCompleted", "CompleteJob"),
    ]
    assert (spec.gang_minimum, loaded.warnings) == (2, ())


def test_job_with_retries_restarts_with_a_new_cluster():
    loaded = formats.load(ray_job(backoffLimit=2))
    assert (loaded.spec.max_retry, str(loaded.spec.task("submitter").policies[0].action)) == (2, "RestartJob")
    assert loaded.warnings == ("spec.backoffLimit: restarts of single pods count too.",)


def test_template_of_the_submitter_is_used():
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "s", "image": "mine"}]}}
    spec = formats.load(ray_job(submitterPodTemplate=template)).spec
    assert spec.task("submitter").image == "mine"
    assert "ray job submit" in command(spec, "submitter")
    template["spec"]["containers"][0]["command"] = ["own"]
    assert formats.load(ray_job(submitterPodTemplate=template)).spec.task("submitter").command == ("own",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ray_job(""), "spec.entrypoint: Required."),
        (ray_job("python 'a"), "spec.entrypoint: A quotation mark has no end."),
        (ray_job(runtimeEnvYAML="[a]"), "spec.runtimeEnvYAML: Must be a mapping"),
        (ray_job(runtimeEnvYAML="{a"), "spec.runtimeEnvYAML: "),
        (ray_job(submissionMode="InteractiveMode"), "spec.submissionMode: Use K8sJobMode"),
        (ray_job(clusterSelector={"ray.io/cluster": "a"}), "spec.clusterSelector: A job runs a cluster of its own."),
        (ray_job(own={}), "spec.rayClusterSpec.headGroupSpec.template.spec.containers: A container is required."),
        (ray("RayCluster", cluster(group(replicas=1))), "spec.workerGroupSpecs[0].groupName: Required"),
        (ray("RayCluster", cluster(group(groupName="head"))), "spec.workerGroupSpecs"),
        (
            ray("RayCluster", cluster(head=group({"a;b": "1"}))),
            "spec.headGroupSpec.rayStartParams: “a;b” is not the name",
        ),
        (
            ray("RayCluster", cluster(head=group({"port": 1}))),
            "spec.headGroupSpec.rayStartParams.port: Must be a string",
        ),
        (ray("RayCluster", cluster(head=group({"port": "x"}))), "spec.headGroupSpec.rayStartParams[0]: --port must be"),
        (ray("RayCluster", cluster(head=group({"x": "y" * 70_000}))), "spec.headGroupSpec"),
        (ray("RayCluster", cluster(group(groupName="w", replicas=10**6))), "spec.workerGroupSpecs[0].replicas: "),
        (ray("RayCluster", cluster(*[group(groupName=f"w{n}") for n in range(60)])), "spec.workerGroupSpecs: "),
        (
            ray("RayCluster", cluster(group(groupName="w", replicas=2, numOfHosts="x"))),
            "spec.workerGroupSpecs[0].numOf",
        ),
        (ray("RayCluster", {}), "spec.headGroupSpec.template.spec.containers: A container is required."),
    ],
)
def test_what_cannot_run_is_refused_at_its_field(text, problem):
    assert any(one.startswith(problem) for one in problems(text)), problems(text)


def test_fields_without_effect_are_reported():
    options = {"enableIngress": True, "template": group()["template"]}
    spec = cluster(head=options, autoscalerOptions={"idleTimeoutSeconds": 60}, gcsFaultToleranceOptions={"a": 1})
    ignored = {
        warning.partition(":")[0]
        for warning in formats.load(
            ray_job(own=spec, shutdownAfterJobFinishes=False, ttlSecondsAfterFinished=10, suspend=True)
        ).warnings
    }
    assert ignored == {
        "spec.rayClusterSpec.headGroupSpec.enableIngress",
        "spec.rayClusterSpec.autoscalerOptions",
        "spec.rayClusterSpec.gcsFaultToleranceOptions",
        "spec.shutdownAfterJobFinishes",
        "spec.ttlSecondsAfterFinished",
        "spec.suspend",
    }


def test_ray_is_only_read():
    form = next(form for form in formats.FORMATS if form.word == "rayjob")
    assert form not in formats.WRITABLE
    with pytest.raises(Invalid, match="cannot be written as this kind"):
        formats.write(formats.load(ray_job()).spec, form)
