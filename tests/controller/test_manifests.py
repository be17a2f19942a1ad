"""Manifests of other platforms, submitted by REST and run by the controller: they mean the same here."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.controller.conftest import SIZE, World

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.controller.controllers import controllers
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock


@pytest.fixture
def world(transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """This machine, with four CPUs."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    yield World.found("local", {"allocatable": SIZE})
    controllers.reset()


@pytest.fixture
def client(world: World) -> APIClient:
    """An API client with Alice's token."""
    token = accounts.create_token(world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    return APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")


def send(client: APIClient, manifest: dict[str, Any]) -> Job:
    """Submits the manifest as a person does."""
    answer = client.post("/api/v1/jobs", yaml.safe_dump(manifest), content_type="application/yaml")
    assert answer.status_code == 201, answer.content
    return Job.objects.get(uid=answer.json()["job"]["uid"])


def phase(job: Job) -> str:
    return Job.objects.get(pk=job.pk).phase


def pods(job: Job) -> dict[str, str]:
    return {f"{pod.task}-{pod.index}": pod.phase for pod in job.pods.order_by("task", "index", "attempt")}


def template(container: str, script: str) -> dict[str, Any]:
    """A pod that runs the script."""
    one = {"name": container, "image": "python:3.12", "command": ["sh", "-c", script]}
    return {"spec": {"terminationGracePeriodSeconds": 0, "containers": [{**one, "resources": {"limits": {"cpu": 1}}}]}}


def tfjob(**spec: Any) -> dict[str, Any]:
    """A parameter server, and two workers, of which only the first one ends soon."""
    script = """case "$TF_CONFIG" in *'"index": 0'*) sleep 0.2;; *) sleep 1000;; esac"""
    replicas = {
        "PS": {"template": template("tensorflow", "sleep 1000")},
        "Worker": {"replicas": 2, "template": template("tensorflow", script)},
    }
    spec = {**spec, "tfReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "tf"}, "spec": spec}


def test_tfjob_without_a_chief_completes_with_its_first_worker(world: World, client: APIClient) -> None:
    job = send(client, tfjob())
    world.reconcile_until(lambda: phase(job) == "completed")
    assert pods(job) == {"ps-0": "failed", "worker-0": "succeeded", "worker-1": "failed"}


def test_tfjob_with_all_workers_waits_for_every_worker(world: World, client: APIClient) -> None:
    job = send(client, tfjob(successPolicy="AllWorkers"))
    world.reconcile_until(lambda: pods(job).get("worker-0") == "succeeded")
    for _ in range(3):
        controllers.reconcile(world.cluster)
    assert (phase(job), pods(job)["worker-1"]) == ("running", "running")
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")


def pytorchjob(replicas: int, script: str, **spec: Any) -> dict[str, Any]:
    """Workers that run the script."""
    worker = {"replicas": replicas, "restartPolicy": "OnFailure", "template": template("pytorch", script)}
    spec = {**spec, "pytorchReplicaSpecs": {"Worker": worker}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "torch"}, "spec": spec}


def test_failing_worker_restarts_more_than_three_times(world: World, client: APIClient) -> None:
    job = send(client, pytorchjob(1, "exit 1"))
    world.reconcile_until(lambda: job.pods.filter(attempt=6).exists())
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")


def test_backoff_limit_ends_a_failing_job(world: World, client: APIClient) -> None:
    job = send(client, pytorchjob(1, "exit 1", runPolicy={"backoffLimit": 1}))
    world.reconcile_until(lambda: phase(job) == "failed")
    assert job.pods.count() == 2


def test_elastic_pytorchjob_starts_with_its_replicas_and_can_grow(world: World, client: APIClient) -> None:
    job = send(client, pytorchjob(2, "sleep 1000", elasticPolicy={"minReplicas": 1, "maxReplicas": 3}))
    world.reconcile_until(lambda: phase(job) == "running")
    world.reconcile_until(lambda: set(pods(job).values()) == {"running"})
    assert list(pods(job)) == ["worker-0", "worker-1"]
    answer = client.patch(f"/api/v1/jobs/{job.uid}/scale", {"tasks": {"worker": {"replicas": 3}}}, format="json")
    assert answer.status_code == 200, answer.content
    world.reconcile_until(lambda: pods(job).get("worker-2") == "running")
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: phase(job) == "aborted")


SERVER = {"name": "main", "image": "server:1", "args": ["--port", "80"], "resources": {"limits": {"cpu": 1}}}


def plain_job(container: dict[str, Any]) -> dict[str, Any]:
    """A Kubernetes Job of one pod."""
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "server"}, "spec": spec}


def test_command_of_an_image_is_refused_where_no_image_runs(world: World, client: APIClient) -> None:
    text = yaml.safe_dump(plain_job(SERVER))
    answer = client.post("/api/v1/jobs", text, content_type="application/yaml")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "tasks.0.command")
    assert "It runs processes of this machine, not images." in answer.json()["errors"][0]["message"]
    job = send(client, plain_job({**SERVER, "command": ["echo"]}))
    world.reconcile_until(lambda: phase(job) == "completed")


@pytest.fixture
def images(world: World) -> World:
    """A simulated cluster, where images run, with the queue `images`."""
    size = {"nodes": [{"name": "n", "allocatable": SIZE}], "seed": 1, "speed": 10}
    world.cluster = clusters.create(name="sim", kind="simulated", config=size, actor=PLATFORM, now=clock.now())
    queues.create(cluster=world.cluster, name="images", actor=PLATFORM, now=clock.now())
    return world


def test_command_of_an_image_runs_where_images_run(images: World, client: APIClient) -> None:
    manifest = plain_job({**SERVER, "env": [{"name": "HEKLA_SIM_SECONDS", "value": "1"}]})
    manifest["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "images"}
    job = send(client, manifest)
    assert (job.spec["tasks"][0].get("command"), job.spec["tasks"][0]["args"]) == (None, ["--port", "80"])
    images.reconcile_until(lambda: phase(job) == "completed")


def simulated_pod(seconds: int) -> dict[str, Any]:
    """A pod of half a CPU that runs for this long."""
    env = [{"name": "HEKLA_SIM_SECONDS", "value": str(seconds)}]
    return {"spec": {"containers": [{"name": "a", "image": "a", "env": env, "resources": {"limits": {"cpu": "500m"}}}]}}


def ray_group(**fields: Any) -> dict[str, Any]:
    return {"rayStartParams": {}, "template": simulated_pod(10**6), **fields}


def test_rayjob_ends_with_its_submitter(images: World, client: APIClient) -> None:
    worker = ray_group(groupName="gpu", replicas=2)
    spec = {
        "entrypoint": "python count.py",
        "rayClusterSpec": {"headGroupSpec": ray_group(), "workerGroupSpecs": [worker]},
        "submitterPodTemplate": simulated_pod(1),
    }
    labels = {"volcano.sh/queue-name": "images"}
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "count", "labels": labels},
        "spec": spec,
    }
    job = send(client, manifest)
    images.reconcile_until(lambda: phase(job) == "completed")
    ends = {"head-0": "failed", "gpu-0": "failed", "gpu-1": "failed", "submitter-0": "succeeded"}
    assert pods(job) == ends


def test_autoscaled_raycluster_starts_with_its_minimum(images: World, client: APIClient) -> None:
    """Four CPUs have room for eight pods of a cluster that may have eleven."""
    worker = ray_group(groupName="gpu", minReplicas=1, maxReplicas=10)
    spec = {"enableInTreeAutoscaling": True, "headGroupSpec": ray_group(), "workerGroupSpecs": [worker]}
    labels = {"volcano.sh/queue-name": "images"}
    head = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "wide", "labels": labels}}
    job = send(client, {**head, "spec": spec})
    images.reconcile_until(lambda: list(pods(job).values()).count("running") == 8)
    assert (phase(job), pods(job)["head-0"]) == ("running", "running")


def test_flinkdeployment_ends_with_its_job_manager(images: World, client: APIClient) -> None:
    manager = {"resource": {"memory": "1g", "cpu": 1}, "podTemplate": simulated_pod(1)}
    workers = {"resource": {"memory": "1g", "cpu": 1}, "podTemplate": simulated_pod(10**6)}
    job_spec = {"jarURI": "local:///opt/flink/usrlib/words.jar", "parallelism": 2}
    annotations = {"scheduling.volcano.sh/queue-name": "images"}
    head = {"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment"}
    metadata = {"name": "words", "annotations": annotations}
    spec = {"image": "flink:1.20", "jobManager": manager, "taskManager": workers, "job": job_spec}
    job = send(client, {**head, "metadata": metadata, "spec": spec})
    images.reconcile_until(lambda: phase(job) == "completed")
    assert pods(job) == {"jobmanager-0": "succeeded", "taskmanager-0": "failed", "taskmanager-1": "failed"}
