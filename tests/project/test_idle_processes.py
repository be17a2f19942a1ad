"""Idle processes sleep: what wakes them is work, not a timer of a library."""

import asyncio
import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest
from celery import current_app
from kombu.asynchronous import Hub

from hekla.launcher.broker_timers import NoBindingTimer
from hekla.launcher.web_server import WebServer, configuration

SHORTEST_SECONDS = 20.0
"""Of the timers of a worker that waits for messages."""


async def test_web_server_wakes_up_rarely_and_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ticks = WebServer(configuration("127.0.0.1", 0)), list[float]()

    async def note(_counter: int) -> bool:
        ticks.append(time.monotonic())
        return server.should_exit

    monkeypatch.setattr(server, "on_tick", note)
    running = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0.3)
    assert len(ticks) == 1
    before = time.monotonic()
    server.handle_exit(signal.SIGTERM, None)
    await asyncio.wait_for(running, 5)
    assert time.monotonic() - before < 0.5
    assert len(ticks) == 2


def test_idle_worker_has_no_short_timers() -> None:
    hub = Hub()
    with current_app.connection_for_read() as connection:
        connection.transport.register_with_event_loop(connection.connection, hub)
        parent: Any = SimpleNamespace(connection=connection)
        NoBindingTimer(parent).start(parent)
        due = [timer.eta for timer in hub.timer.queue if not timer.entry.canceled]
    hub.close()
    assert min(due) - time.monotonic() > SHORTEST_SECONDS, "a library has a timer that Hekla does not know"
