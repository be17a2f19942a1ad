"""Jobs on a machine whose pods are containers of a real Podman, through the controller."""

import socket
from collections.abc import Iterator

import pytest
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase
from tests.podman.server import Podman

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock


@pytest.fixture
def world(podman: Podman, transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """One node with four CPUs."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    config = {"runtime": "containers", "socket": podman.socket, "allocatable": {"cpu": "4"}}
    made = World.found("local", config)
    yield made
    backend_of(made.cluster).remove_logs(Job.objects.get().uid.hex)
    controllers.reset()


def submit(world: World, image: str, command: list[str]) -> Job:
    """A job of one pod with this image."""
    task = {"name": "main", "command": command, "image": image, "resources": {"cpu": "500m", "memory": "64Mi"}}
    spec = JobSpec.parse({"name": "job", "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def test_job_runs_in_its_image(world: World, podman: Podman) -> None:
    job = submit(world, podman.image, ["sh", "-c", "echo $FLAVOUR"])
    world.reconcile_until(lambda: phase(job) == "completed")
    pod = Pod.objects.get(job=job)
    assert backend_of(world.cluster).logs(key_of(pod), offset=0, limit=100).data == b"box\n"


def test_pod_says_that_its_image_is_pulled(world: World) -> None:
    """The registry never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        image = f"127.0.0.1:{silent.getsockname()[1]}/box:1"
        job = submit(world, image, ["true"])
        world.reconcile_until(lambda: Pod.objects.get(job=job).message == f"Pulling the image {image}")
        assert Pod.objects.get(job=job).phase == "preparing"
        services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
        world.reconcile_until(lambda: phase(job) == "aborted")
        assert Pod.objects.get(job=job).phase == "failed"
