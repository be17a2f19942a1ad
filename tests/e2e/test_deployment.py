"""The processes of the systemd units and of the Helm chart start, run a job and stop in time.

The commands are those of the files. Only paths, the address and the port are of this machine. Those of the chart are
forks of one process, which loads the code once: each start of Python would take five CPU seconds for it.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest
from tests.deploy import chart
from tests.e2e.conftest import CHECKOUT, free_port
from tests.support.processes import PROCESSES
from tests.support.worker_forks import FAILED

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


class Forks:
    """Runs commands of Python modules as forks of one process: a client of `tests.support.worker_forks`."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._home = home
        argv, pipe = [sys.executable, "-m", "tests.support.worker_forks"], subprocess.PIPE
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a fork would lack the others
        with (home / "forks.log").open("ab") as log:
            self._process = subprocess.Popen(
                argv, stdin=pipe, stdout=pipe, stderr=log, env={**environment, **threads}, cwd=CHECKOUT, text=True
            )

    def start(self, argv: Sequence[str], log: Path) -> psutil.Process:
        assert argv[1] == "-m", argv
        assert self._process.stdin
        assert self._process.stdout
        log.touch()
        self._process.stdin.write(json.dumps([{}, argv[2:], str(log)]) + "\n")
        self._process.stdin.flush()
        return psutil.Process(int(self._process.stdout.readline()))

    def run(self, argv: Sequence[str]) -> str:
        """Run a command, or those that a shell would run one after another. Return what the last one wrote."""
        output = ""
        for command in argv[-1].split(" && ") if argv[0] == "sh" else [shlex.join(argv)]:
            log = self._home / "run.log"
            log.unlink(missing_ok=True)
            with suppress(psutil.NoSuchProcess):  # it has ended before anyone looked
                self.start(shlex.split(command), log).wait(120)
            output = log.read_text()
            assert FAILED not in output, output
        return output

    def close(self) -> None:
        self._process.communicate(timeout=30)


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
        self.processes: dict[str, subprocess.Popen[bytes] | psutil.Process] = {}
        self.forks: Forks | None = None

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

    def fork(self) -> None:
        """Run all later commands as forks."""
        self.forks = Forks(self.home, self.environment)

    def run(self, argv: list[str]) -> str:
        if self.forks:
            return self.forks.run(argv)
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
            path = self.home / f"{name}.log"
            if self.forks:
                self.processes[name] = self.forks.start(argv, path)
                continue
            with path.open("ab") as log:
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
        if created.forks:
            created.forks.close()


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
    deployment.fork()
    for argv in deployment.commands("tables"):
        deployment.run(argv)
    deployment.run(["sh", "-c", check])
    assert_starts_and_runs_a_job(deployment)
    deployment.stop()
