"""The processes of the systemd units and of the Helm chart start, run a job and stop in time.

The commands are those of the files. Only paths, the address and the port are of this machine.
"""

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
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.deploy import chart
from tests.e2e.conftest import CHECKOUT, free_port
from tests.support.processes import PROCESSES

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.embedded.child import spawn
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running
from hekla.launcher.up.template import template_folder

UNITS = CHECKOUT / "deploy" / "systemd"
JOB = {"name": "deployed", "tasks": [{"name": "main", "command": ["echo", "well"], "resources": {"cpu": "100m"}}]}


class DeploymentFiles(Protocol):
    """The settings and the commands in the files of a deployment."""

    def settings(self) -> dict[str, str]:
        """The environment of the processes, without the settings that a test replaces."""
        ...

    def commands(self, name: str) -> list[list[str]]:
        """The commands of a process, or of the migration (`tables`), in order."""
        ...


class SystemdUnits:
    """The systemd units."""

    def settings(self) -> dict[str, str]:
        return dict(re.findall(r"^([A-Z_]+)=(.*)$", (UNITS / "hekla.env").read_text(), re.MULTILINE))

    def commands(self, name: str) -> list[list[str]]:
        text = (UNITS / f"hekla-{name}.service").read_text().replace("%%", "%")
        return [shlex.split(line) for line in re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)]


class ChartPods:
    """The image, and the pods of the chart with its minimal values."""

    def __init__(self, helm: Path) -> None:
        self._pods = chart.pods(chart.render(helm, chart.MINIMAL))

    def settings(self) -> dict[str, str]:
        image_settings = re.findall(r"\b([A-Z_]+)=(\S+)", (CHECKOUT / "deploy" / "compose" / "Dockerfile").read_text())
        variables = chart.environment(self._pods["web"]).items()
        return dict(image_settings) | {name: variable["value"] for name, variable in variables if "value" in variable}

    def commands(self, name: str) -> list[list[str]]:
        return [container["command"] for container in self._pods[name]["spec"]["containers"]]

    def waits(self) -> list[list[str]]:
        """The commands of the init containers, which end before the processes start."""
        return [self._pods[name]["spec"]["initContainers"][0]["command"] for name in PROCESSES]


class Deployment:
    """A deployment on this machine: settings, a database, Valkey, and the processes of the files."""

    def __init__(self, home: Path, database: str, valkey: str) -> None:
        self.home, self.port = home, free_port()
        self.files: DeploymentFiles = SystemdUnits()
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
        return {"PATH": path} | self.files.settings() | self._settings

    def commands(self, name: str) -> list[list[str]]:
        return [[self._localize(word) for word in argv] for argv in self.files.commands(name)]

    def _localize(self, word: str) -> str:
        replacements = {
            "/opt/hekla/.venv/bin/python": sys.executable,
            "/var/lib/hekla": str(self.home),
            "0.0.0.0": "127.0.0.1",
            "8000": str(self.port),
        }
        for original, replacement in replacements.items():
            word = word.replace(original, replacement)
        return word

    def run(self, argv: list[str]) -> str:
        result = self.run_unchecked(argv)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def run_unchecked(self, argv: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment | more
        return subprocess.run(argv, env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False)

    @property
    def without_tables(self) -> str:
        """The URL of a database of the same server that has no tables."""
        return urlsplit(self._settings["DATABASE_URL"])._replace(path="/postgres").geturl()

    def start(self) -> None:
        for name in PROCESSES:
            (argv,) = self.commands(name)
            with (self.home / f"{name}.log").open("ab") as log:
                self.processes[name] = spawn(argv, output=log.fileno(), env=self.environment, folder=CHECKOUT)

    def stop(self) -> dict[str, float]:
        """Stop the processes with SIGTERM. Return how many seconds each took."""
        durations = {}
        for name, process in self.processes.items():
            started_at = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(120)
            durations[name] = time.monotonic() - started_at
        self.processes = {}
        return durations

    def client(self) -> httpx2.Client:
        token = (self.home / "cli-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Host": "hekla.example.org", "X-Forwarded-Proto": "https"}
        return httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=20)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """The tables come from the template, which the same migration made: to make them again takes 15 CPU seconds."""
    run = run_dir(tmp_path)
    postgres, valkey = Postgres(tmp_path / "postgres", run, transient=True, template=template_folder()), Valkey(run)
    home = tmp_path / "home"
    home.mkdir()
    with ExitStack() as stack, (tmp_path / "servers.log").open("ab") as log:
        for server in (postgres, valkey):
            stack.enter_context(running(server, log.fileno()))
        created = Deployment(home, postgres.url, valkey.url)
        yield created
        for process in created.processes.values():
            process.kill()
            process.wait(10)


def until(condition: Callable[[], bool], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_ready(client: httpx2.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx2.HTTPError:
        return False


def assert_starts_and_runs_a_job(deployment: Deployment) -> None:
    assert "sign_in" in deployment.run([sys.executable, "-m", "django", "setup_first_data"])
    deployment.start()
    with deployment.client() as client:
        until(lambda: is_ready(client))
        assert client.get("/readyz").text == "database: ok\ntables: ok\nmessages: ok\ncontrollers: ok\n"
        uid = client.post("/api/v1/jobs", json=JOB).json()["job"]["uid"]
        until(lambda: client.get(f"/api/v1/jobs/{uid}").json()["phase"] == "completed")
        assert "well" in client.get(f"/api/v1/jobs/{uid}/pods/main/0/log").text


@pytest.mark.slow
@pytest.mark.thorough
def test_systemd_units_start_run_a_job_and_stop_in_time(deployment: Deployment) -> None:
    for argv in deployment.commands("tables"):
        deployment.run(argv)
    assert_starts_and_runs_a_job(deployment)
    assert max(deployment.stop().values()) < 15


def test_chart_pods_wait_for_the_tables_and_run_a_job(deployment: Deployment, helm: Path) -> None:
    pods = deployment.files = ChartPods(helm)
    (check,) = {re.sub(r"^until (.*); do .*$", r"\1", argv[-1]) for argv in pods.waits()}
    waits = deployment.run_unchecked(["sh", "-c", check], DATABASE_URL=deployment.without_tables)
    assert waits.returncode != 0
    assert "Traceback" not in waits.stderr, waits.stderr
    for argv in [*deployment.commands("tables"), *pods.waits()[:1]]:
        deployment.run(argv)
    assert_starts_and_runs_a_job(deployment)
    deployment.stop()
