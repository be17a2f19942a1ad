"""Idle sessions the whole way: traffic through the proxy, terminals, kernels in a real pod, and the end."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from tests.controller.conftest import World, one_machine, world
from tests.live.test_proxy import ProxySetup, place
from tests.live.test_terminals import opened_page, play
from tests.live.test_tools import browser, run_pod, start, until_it_is_not_starting

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.idleness import selectors, services
from hekla.apps.idleness.models import SessionIdleness, SessionMinute
from hekla.apps.jobs.models import Pod
from hekla.apps.workbench.models import ToolSession
from hekla.domain.idleness import IdleStep, KeepCause, Signal
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.live import activity
from hekla.live.terminals import notices
from hekla.workbench import idling

__all__ = ["browser", "one_machine", "place", "world"]
RULE = {"ends_sessions": True, "idle_minutes": 5, "grace_minutes": 5, "cpu_percent": None}
MINUTE = timedelta(minutes=1)

NOTEBOOK = """
import http.server, os, sys
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = open("kernels.json", "rb").read() if self.path == "/api/kernels" else b"{}"
        if self.headers.get("Authorization") != "token " + os.environ["JUPYTER_TOKEN"]:
            body = b"[]"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer((options["ip"], int(options["port"])), Handler).serve_forever()
"""


def recorded(session: ToolSession, is_enough: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """The stored amounts, as soon as there are enough."""
    deadline = clock.now() + timedelta(seconds=20)
    while True:
        rows = SessionMinute.objects.filter(session=session).values("requests", "input", "network_bytes")
        found = {name: sum(row[name] for row in rows) for name in ("requests", "input", "network_bytes")}
        if is_enough(found):
            return found
        assert clock.now() < deadline, found
        time.sleep(0.05)


def watch(begin: datetime, first: int, last: int) -> None:
    """The watch, once in each of these minutes."""
    for minute in range(first, last + 1):
        idling.watch(now=begin + minute * MINUTE)


def session_of(world: World, pod: Pod, **facts: Any) -> ToolSession:
    now = clock.now()
    return ToolSession.objects.create(pod=pod, owner=world.alice, created_at=now, ready_at=now, **facts)


def test_what_a_person_does_in_the_browser_counts_and_an_open_page_does_not(
    place: ProxySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "STORE_EVERY_SECONDS", 0.1)
    place.enter(place.ticket())
    with place.socket() as opened:
        for text in ("ping", "a message of a person, of some length"):
            opened.send(text)
            opened.recv(5)
        for mode in ("navigate", "cors", "cors"):
            place.get("/headers", sec_fetch_mode=mode, sec_fetch_site="same-origin").read()
        found = recorded(place.session, lambda amounts: amounts["requests"] > 0 and amounts["input"] > 0)
    assert (found["requests"], found["input"]) == (1, 1)
    assert recorded(place.session, lambda amounts: amounts["network_bytes"] > 100)


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_busy_kernel_keeps_a_session_without_a_tab_and_an_idle_one_is_warned_and_stopped(
    world: World, browser: Client, tmp_path: Path
) -> None:
    files = {"jupyterlab/__init__.py": "", "jupyterlab/__main__.py": NOTEBOOK, "kernels.json": "[]"}
    pod = run_pod(world, files)
    until_it_is_not_starting(browser, pod, start(browser, pod, "jupyterlab").json()["uid"])
    services.set_rule(world.tenant, RULE, user=world.alice, now=clock.now())
    session = ToolSession.objects.select_related("pod__job__tenant").get()
    kernels = next(tmp_path.rglob("kernels.json"))
    kernels.write_text(json.dumps([{"execution_state": "busy"}, {"execution_state": "idle"}]))
    begin = clock.now()
    watch(begin, 0, 20)
    verdict = selectors.activity_of(session, now=begin + 20 * MINUTE).verdict
    assert (verdict.step, verdict.cause, verdict.signal) == (IdleStep.KEEP, KeepCause.SIGNAL, Signal.KERNEL)
    kernels.write_text("no list of kernels")
    watch(begin, 21, 24)
    verdict = selectors.activity_of(session, now=begin + 24 * MINUTE).verdict
    assert (verdict.step, verdict.cause, verdict.signal) == (IdleStep.KEEP, KeepCause.UNKNOWN, Signal.KERNEL)
    kernels.write_text(json.dumps([{"execution_state": "idle"}]))
    watch(begin, 25, 28)
    assert not LoggedEvent.objects.filter(kind="SessionIdleWarned").exists()
    watch(begin, 29, 34)
    assert LoggedEvent.objects.filter(kind="SessionIdleWarned").count() == 1
    socket.create_connection((pod.address, session.port), timeout=5).close()
    watch(begin, 35, 35)
    session.refresh_from_db()
    assert session.end_reason == "idle"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((pod.address, session.port), timeout=5)
    world.reconcile_until(lambda: Pod.objects.get(pk=pod.pk).phase == PodPhase.RUNNING)  # the pod goes on


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_typing_in_the_terminal_keeps_sessions_of_the_same_pod_and_a_warning_is_printed_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "STORE_EVERY_SECONDS", 0.1)
    monkeypatch.setattr(notices, "LOOK_EVERY_SECONDS", 0.1)
    pod = run_pod(world, {})
    session = session_of(world, pod, slug="a" * 26, tool="port", port=8080)

    def typed() -> int:
        return sum(SessionMinute.objects.filter(session=session).values_list("terminal", flat=True))

    async def scene() -> None:
        async with opened_page(pod, world.alice) as page:
            await page.run("echo $((6 * 7))", "42")
            while not await sync_to_async(typed)():
                await asyncio.sleep(0.05)
            now = clock.now()
            warned = {"session": session, "warned_at": now - MINUTE, "ends_at": now + 5 * MINUTE}
            await SessionIdleness.objects.acreate(**warned)  # as if all sessions had been measured before
            await page.until(lambda: "The session “Port 8080” is idle and ends in 5 min." in page.text)
            before = await sync_to_async(typed)()
            await page.run("echo $((6 * 8))", "48")
            while await sync_to_async(typed)() == before:
                await asyncio.sleep(0.05)
            assert page.text.count("is idle and ends in") == 1

    play(scene)
    assert typed() == 2 * len("echo $((6 * 7))\r")
