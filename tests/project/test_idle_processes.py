"""Idle processes sleep: what wakes them is work, not a timer of a library."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, current_app
from celery.beat import Service
from django.conf import settings
from kombu.asynchronous import Hub

from hekla.launcher import beat_thread
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


def test_beat_thread_sends_tasks_and_starts_again_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = Celery("alone", broker="memory://", set_as_current=False)
    app.conf.beat_schedule = {"often": {"task": "often", "schedule": 0.05}}
    starts: list[Service] = []

    class Failing(Service):  # type: ignore[misc]
        def start(self, embedded_process: bool = False) -> None:
            starts.append(self)
            if len(starts) == 1:
                raise RuntimeError("no such file")
            super().start(embedded_process)

    monkeypatch.setattr(beat_thread, "Service", Failing)
    monkeypatch.setattr(beat_thread, "_AGAIN_SECONDS", 0.01)
    worker: Any = SimpleNamespace(app=app)
    assert not beat_thread.BeatThread(worker).include_if(worker)
    step = beat_thread.BeatThread(worker, periodic_tasks=str(tmp_path / "beat"))
    assert step.include_if(worker)
    step.start(worker)
    try:
        with app.connection_for_read() as connection:
            message = connection.SimpleQueue(app.conf.task_default_queue).get(timeout=20)
    finally:
        step.stop(worker)
    assert message.headers["task"] == "often"
    assert "no such file" in caplog.text


def test_beat_process_sends_tasks_by_name_and_loads_none() -> None:
    code = (
        "from hekla.project.celery import app; beat = app.Beat(); beat.init_loader(); beat.setup_logging(); import sys;"
        "print(*sys.modules, file=sys.__stdout__); import logging; logging.getLogger('celery.beat').error('no broker')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "E celery.beat: no broker\n", "the lines of all processes have this form"
    loaded = done.stdout.split()
    assert "hekla.launcher.beat_process" in loaded
    assert not {"hekla.controller.tasks", "hekla.apps.jobs.models"} & set(loaded)
    current_app.loader.import_default_modules()
    for name in (entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()):
        task = current_app.tasks[name]
        own = [getattr(task, option, None) for option in ("queue", "expires", "priority", "routing_key")]
        assert own == [None] * 4, f"{name} has options that beat does not know"
