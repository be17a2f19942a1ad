"""Jobs on a machine whose pods are containers of a real Podman, through the controller."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase
from tests.podman.server import Podman
from tests.podman.slow_registry import slow_registry
from tests.support.websocket import Socket

from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.live.consumers import PageConsumer

SECONDS = 20.0


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


async def test_progress_of_a_pull_is_sent_to_the_open_page(world: World) -> None:
    """Without an event: there may be many such messages."""
    with slow_registry() as image:
        job = await sync_to_async(submit)(world, image, ["true"])
        pod = await sync_to_async(_pulled)(world)
        since = await sync_to_async(event_log.last_number)()
        query = f"view=pod&uid={job.uid}&pod={pod.pk}&since={since}&language=en"
        page = Socket(PageConsumer.as_asgi(), f"/ws/live/?{query}", world.alice)
        await page.open()
        assert (await page.message())["type"] == "hello"
        is_sent = threading.Event()
        controller = asyncio.create_task(sync_to_async(world.reconcile_until)(is_sent.is_set))
        message = await page.message(SECONDS)
        is_sent.set()
        await controller
        await page.leave()
        assert (message["type"], message["seq"]) == ("fragments", since)
        assert re.search(rf"Pulling the image {image}: \d+ of 16 MiB", message["html"])
        await sync_to_async(services.command)(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
        await sync_to_async(world.reconcile_until)(lambda: phase(job) == "aborted")
    await sync_to_async(connections.close_all)()


def _pulled(world: World) -> Pod:
    """The pod as soon as its image is pulled."""
    world.reconcile_until(lambda: Pod.objects.get().message.startswith("Pulling the image"))
    return Pod.objects.get()
