"""Units and pods, run as they are written but for places: a console comes up, works and ends in time."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import httpx2
import pytest
from tests.deploy import chart
from tests.e2e.conftest import CHECKOUT, free_port
from tests.support.processes import PROCESSES

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.embedded.child import spawn
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running

UNITS = CHECKOUT / "deploy" / "systemd"
JOB = {"name": "deployed", "tasks": [{"name": "main", "command": ["echo", "well"], "resources": {"cpu": "100m"}}]}


class Written(Protocol):
    """How a deployment says what is run, and with which settings, on a machine laid out as it wants."""

    def settings(self) -> dict[str, str]:
        """What the processes are told, but for what a test has in its own place."""
        ...

    def commands(self, name: str) -> list[list[str]]:
        """What is run for a process, or for the tables, one after the other."""
        ...


class Units:
    """As systemd does it."""

    def settings(self) -> dict[str, str]:
        return dict(re.findall(r"^([A-Z_]+)=(.*)$", (UNITS / "hekla.env").read_text(), re.MULTILINE))

    def commands(self, name: str) -> list[list[str]]:
        text = (UNITS / f"hekla-{name}.service").read_text().replace("%%", "%")
        return [shlex.split(line) for line in re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)]


class Pods:
    """As Kubernetes does it: what the image sets, and what the chart makes of the fewest values."""

    def __init__(self, helm: Path) -> None:
        self._pods = chart.pods(chart.render(helm, chart.MINIMAL))

    def settings(self) -> dict[str, str]:
        of_image = re.findall(r"\b([A-Z_]+)=(\S+)", (CHECKOUT / "deploy" / "compose" / "Dockerfile").read_text())
        told = chart.environment(self._pods["web"]).items()
        return dict(of_image) | {name: variable["value"] for name, variable in told if "value" in variable}

    def commands(self, name: str) -> list[list[str]]:
        return [container["command"] for container in self._pods[name]["spec"]["containers"]]

    def waits(self) -> list[list[str]]:
        """What must have ended before the processes start."""
        return [self._pods[name]["spec"]["initContainers"][0]["command"] for name in PROCESSES]


class Deployment:
    """What a machine would have: settings, servers beside, and the processes as they are written."""

    def __init__(self, home: Path, database: str, valkey: str) -> None:
        self.home, self.port = home, free_port()
        self.written: Written = Units()
        self._settings = {
            "HEKLA_SECRET_KEY": "GxT3vPq0-7bZkLmR5wYcJ9sNf2HdAeUo8iVhXyQtB1rKpM4",
            "DATABASE_URL": database,
            "VALKEY_URL": valkey,
            "HEKLA_HOME": str(home),
            "PYTHONPATH": str(CHECKOUT / "platform"),
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"PATH": path} | self.written.settings() | self._settings

    def commands(self, name: str) -> list[list[str]]:
        return [[self._here(word) for word in argv] for argv in self.written.commands(name)]

    def _here(self, word: str) -> str:
        places = {
            "/opt/hekla/.venv/bin/python": sys.executable,
            "/var/lib/hekla": str(self.home),
            "0.0.0.0": "127.0.0.1",
            "8000": str(self.port),
        }
        for place, here in places.items():
            word = word.replace(place, here)
        return word

    def run(self, argv: list[str]) -> str:
        done = self.ended(argv)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ended(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, env=self.environment, cwd=CHECKOUT, capture_output=True, text=True, check=False)

    def start(self) -> None:
        for name in PROCESSES:
            (argv,) = self.commands(name)
            with (self.home / f"{name}.log").open("ab") as log:
                self.processes[name] = spawn(argv, output=log.fileno(), env=self.environment, folder=CHECKOUT)

    def stop(self) -> dict[str, float]:
        """How long each took to end when it was asked."""
        took = {}
        for name, process in self.processes.items():
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(120)
            took[name] = time.monotonic() - began
        self.processes = {}
        return took

    def client(self) -> httpx2.Client:
        token = (self.home / "cli-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Host": "hekla.example.org", "X-Forwarded-Proto": "https"}
        return httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=20)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    run = run_dir(tmp_path)
    postgres, valkey = Postgres(tmp_path / "postgres", run, transient=True), Valkey(run)
    home = tmp_path / "home"
    home.mkdir()
    with ExitStack() as stack, (tmp_path / "servers.log").open("ab") as log:
        for server in (postgres, valkey):
            stack.enter_context(running(server, log.fileno()))
        made = Deployment(home, postgres.url, valkey.url)
        yield made
        for process in made.processes.values():
            process.kill()
            process.wait(10)


def until(holds: Callable[[], bool], seconds: float = 180) -> None:
    give_up_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up_at
        time.sleep(0.1)


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx2.HTTPError:
        return False


def comes_up_and_works(deployment: Deployment) -> None:
    assert "sign_in" in deployment.run([sys.executable, "-m", "django", "setup_first_data"])
    deployment.start()
    with deployment.client() as client:
        until(lambda: answers(client))
        assert client.get("/readyz").text == "database: ok\ntables: ok\nmessages: ok\n"
        uid = client.post("/api/v1/jobs", json=JOB).json()["job"]["uid"]
        until(lambda: client.get(f"/api/v1/jobs/{uid}").json()["phase"] == "completed")
        assert "well" in client.get(f"/api/v1/jobs/{uid}/pods/main/0/log").text


@pytest.mark.slow
def test_the_units_bring_up_a_console_that_works_and_ends_in_time(deployment: Deployment) -> None:
    for argv in deployment.commands("tables"):
        deployment.run(argv)
    comes_up_and_works(deployment)
    assert max(deployment.stop().values()) < 15


def test_the_pods_of_the_chart_wait_for_their_tables_and_are_a_console_that_works(
    deployment: Deployment, helm: Path
) -> None:
    pods = deployment.written = Pods(helm)
    (check,) = {re.sub(r"^until (.*); do .*$", r"\1", argv[-1]) for argv in pods.waits()}
    assert deployment.ended(["sh", "-c", check]).returncode != 0
    for argv in [*deployment.commands("tables"), *pods.waits()[:1]]:
        deployment.run(argv)
    comes_up_and_works(deployment)
    deployment.stop()
