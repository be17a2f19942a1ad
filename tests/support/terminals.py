"""Terminals of pods over their websocket, for tests: running pods, pages, and a loop that ends its terminals."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections
from tests.controller.conftest import World
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.apps.tenancy import services as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.live.terminals import registry, terminal
from hekla.live.terminals.consumer import TerminalConsumer


def run_pod(world: World, script: str = "exec sleep 1000", name: str = "talk", replicas: int = 1, **env: str) -> Pod:
    """A running pod of Alice's; of several replicas, the first."""
    task = {"name": "main", "command": ["sh", "-c", script], "env": {"HEKLA_SIM_SECONDS": "100000", **env}}
    spec = JobSpec.parse({"name": name, "tasks": [{**task, "replicas": replicas}]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(job=job, phase=PodPhase.RUNNING).count() == replicas)
    return Pod.objects.select_related("job").filter(job=job).order_by("index")[0]


def member(world: World, name: str, role: str) -> User:
    user = accounts.create_user(username=name, password=None, actor=PLATFORM, now=clock.now())
    tenancy.add_member(world.tenant, user, role, actor=PLATFORM, now=clock.now())
    return user


class TerminalSocket(Socket):
    """A page with a terminal. `text`: its output so far; `messages`: the others, by type."""

    def __init__(self, pod: Pod, user: User, query: str = "") -> None:
        route = {"kwargs": {"pod_id": str(pod.pk)}}
        super().__init__(TerminalConsumer.as_asgi(), f"/ws/terminals/{pod.pk}/?{query}", user, url_route=route)
        self.text, self.offset = "", 0
        self.messages: dict[str, dict[str, Any]] = {}

    async def receive_message(self, timeout: float = 5) -> dict[str, Any]:
        message = await self.message(timeout)
        if message["type"] == "output":
            self.text += base64.b64decode(message["data"]).decode(errors="replace")
            self.offset = message["next"]
        else:
            self.messages[message["type"]] = message
        return message

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not done():
                await self.receive_message()

    async def say(self, kind: str, **facts: object) -> None:
        await self.send_input({"type": "websocket.receive", "text": json.dumps({"type": kind, **facts})})

    async def run(self, line: str, answer: str) -> None:
        await self.say("input", data=f"{line}\r")
        await self.until(lambda: answer in self.text)


@asynccontextmanager
async def opened_page(pod: Pod, user: User, query: str = "") -> AsyncIterator[TerminalSocket]:
    page = TerminalSocket(pod, user, query)
    await page.open()
    await page.receive_message()
    try:
        yield page
    finally:
        await page.leave()


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Plays it in a loop of its own, and ends its terminals."""

    async def whole() -> None:
        try:
            await scene()
        finally:
            for one in [*registry.terminals()._open.values()]:
                one.stop(terminal.TerminalEnd.CLOSED)
            ending = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "Terminal._live"]
            await asyncio.gather(*ending)
            await sync_to_async(connections.close_all)()

    async_to_sync(whole)()
