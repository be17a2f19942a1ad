"""A running console for the command line: a server on a free port, and a controller in a thread."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from django.db import connection
from pytest_django.live_server_helper import LiveServer
from tests.controller.conftest import LAST_SECONDS, World, one_machine, world

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters.models import Node
from hekla.cli import main
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.lib import clock

__all__ = ["one_machine", "world"]


def hekla(*words: str | Path, **more: Any) -> Result:
    """Run the command line. A traceback fails the test."""
    result = CliRunner().invoke(main.hekla, [str(word) for word in words], prog_name="hekla", **more)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def isolated_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test uses the console or token of the user who runs the tests."""
    for name in ("HEKLA_SERVER", "HEKLA_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEKLA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@dataclass
class Console:
    """A console with one node, and Alice's token."""

    world: World
    url: str
    token: str

    def __call__(self, *words: str | Path, **more: Any) -> Result:
        """Run a command as Alice."""
        return hekla("--server", self.url, "--token", self.token, *words, **more)


def _reconcile(world: World, stop: threading.Event) -> None:
    try:
        backend = backend_of(world.cluster)
        while not stop.is_set():
            controllers.reconcile(world.cluster)
            backend.wait(0.2)
    finally:
        connection.close()


def _wait_for_a_node(world: World) -> None:
    deadline = time.monotonic() + LAST_SECONDS
    while not Node.objects.filter(cluster=world.cluster, is_ready=True).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def console(world: World, live_server: LiveServer) -> Iterator[Console]:
    """The console after `up`: the server and the controller run."""
    token = accounts.create_token(world.alice, name="cli", lifetime=timedelta(hours=1), now=clock.now())
    stop = threading.Event()
    thread = threading.Thread(target=_reconcile, args=(world, stop))
    thread.start()
    _wait_for_a_node(world)
    yield Console(world, live_server.url, token)
    stop.set()
    thread.join(timeout=10)


@pytest.fixture
def manifest(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a Volcano Job of one task with this command."""

    def write(name: str = "talk", *, command: str = "[sh, -c, 'echo hello; echo world']", extra: str = "") -> Path:
        path = tmp_path / "job.yaml"
        path.write_text(
            f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}{extra}}}
spec:
  tasks:
    - name: main
      replicas: 1
      template:
        spec:
          containers: [{{name: c, command: {command}, resources: {{requests: {{cpu: 100m}}}}}}]
"""
        )
        return path

    return write
