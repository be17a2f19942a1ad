"""Kubernetes pods whose start was interrupted or that are over, as the controller handles them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from tests.controller.conftest import World
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import _grant, grant_in_namespace

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.priorities import services as priorities
from hekla.backends.base import BackendError
from hekla.backends.kubernetes.reflector import Reflector
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)


def submit(world: World, seconds: str, **more: Any) -> Job:
    env = {"HEKLA_SIM_SECONDS": seconds}
    task: dict[str, Any] = {"name": "main", "command": ["x"], "resources": {"cpu": "1"}, "env": env}
    spec = JobSpec.parse({"name": "one", "tasks": [task], **more})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_pod_with_an_interrupted_start_still_runs(world, monkeypatch) -> None:
    backend = backend_of(world.cluster)

    async def cut(*_: Any) -> None:
        raise BackendError("The API server does not answer")

    job = submit(world, "0.1")
    with monkeypatch.context() as patch:
        patch.setattr(backend.parts.pod_creation, "_bind", cut)
        controllers.reconcile(world.cluster)
        assert backend.inventory().present == {job.uid.hex}
        controllers.reset()  # as after a restart
        controllers.reconcile(world.cluster)
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED)


def test_pod_is_deleted_after_its_end_is_recorded(world) -> None:
    job = submit(world, "0.1")
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED)
    backend = backend_of(world.cluster)
    world.reconcile_until(lambda: not backend.observe(None).pods)
    assert backend.inventory().logged == {job.uid.hex}


def test_pod_bound_unnoticed_ends_with_its_process(world, monkeypatch) -> None:
    """The response to its binding is lost, and the job is aborted. The pod's result must be that of its process."""
    starting = backend_of(world.cluster).parts.pod_creation
    bind = starting._bind

    def abort() -> None:
        services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
        connection.close()

    async def bind_and_be_cut(*args: Any) -> None:
        await bind(*args)
        await asyncio.to_thread(abort)
        raise BackendError("The API server does not answer")

    controllers.reconcile(world.cluster)  # from here on the backend reports changes
    job = submit(world, "1000")
    with monkeypatch.context() as patch:
        patch.setattr(starting, "_bind", bind_and_be_cut)
        patch.setattr(Reflector, "handle", lambda *_: None)  # the watch reports nothing either
        controllers.reconcile(world.cluster)
        assert Pod.objects.get(job=job).phase == PodPhase.BOUND
    controllers.reset()
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.ABORTED)
    assert Pod.objects.get(job=job).exit_code == 143


_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture
def remove_priority_classes(small_cluster: ControlPlane) -> Iterator[None]:
    yield
    for one in small_cluster.request("GET", f"{_CLASSES}?labelSelector=hekla.dev/cluster")["items"]:
        small_cluster.request("DELETE", f"{_CLASSES}/{one['metadata']['name']}")


@pytest.mark.usefixtures("remove_priority_classes")
def test_pods_have_the_priority_of_the_submission(world, one_machine) -> None:
    config = {**one_machine, "priority_classes": True}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    made = priorities.create(name="high", values={"value": 4321}, actor=PLATFORM, now=clock.now())
    job = submit(world, "1000", priority_class="high")
    priorities.change(made, {"value": 5}, tenants=[], actor=PLATFORM, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.RUNNING)
    (found,) = backend_of(world.cluster).parts.api.get(f"/api/v1/namespaces/{one_machine['namespace']}/pods")["items"]
    assert (found["spec"]["priority"], found["spec"]["preemptionPolicy"]) == (4321, "Never")


def test_port_is_exposed_until_the_job_is_deleted(world, one_machine, small_cluster) -> None:
    plane, namespace = small_cluster, one_machine["namespace"]
    _grant(plane, "rights-ports.yaml")
    grant_in_namespace(plane, "rights-ports.yaml", namespace)
    ingress = {"domain": "jobs.example.org", "class_name": "nginx", "namespace": "ingress-nginx"}
    config = {**one_machine, "ingress": ingress}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    task = {"name": "main", "command": ["x"], "ports": {"board": 6006}, "env": {"HEKLA_SIM_SECONDS": "1"}}
    job = submit(world, "", tasks=[task])
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).phase == JobPhase.COMPLETED)
    place = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"
    (found,) = plane.request("GET", place)["items"]
    assert [rule["host"] for rule in found["spec"]["rules"]] == [f"{job.uid.hex}-board.jobs.example.org"]
    services.delete(job, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: not plane.request("GET", place)["items"])
    left = plane.request("GET", f"/api/v1/namespaces/{namespace}/services")["items"]
    assert [one for one in left if one["metadata"]["name"].startswith("port-")] == []
