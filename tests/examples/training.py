"""Run an example for real, without a console: its processes, on loopback addresses, in the environment it names."""

import fcntl
import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uv

from hekla.domain import formats, frameworks
from hekla.domain.jobspec import JobSpec
from hekla.lib.checkout import CHECKOUT

EXAMPLES = CHECKOUT / "platform" / "examples"
TIMEOUT_SECONDS = 240  # a first import of two TensorFlows from a slow disk
_LOADED = {"digits": "from sklearn.datasets import load_breast_cancer as a, load_digits as b; a(), b()"}
"""What the programs in an environment load of it. Python compiles this part then: all would be three times as much."""


def spec_of(example: str) -> JobSpec:
    """The job of the example's manifest, which loads without warnings."""
    loaded = formats.load((EXAMPLES / example / "job.yaml").read_text(encoding="utf-8"))
    assert loaded.warnings == ()
    return loaded.spec


def python_with(requirements: Path) -> Path:
    """The interpreter of an environment with these packages; built once, in the user's cache."""
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "hekla-tests" / f"{requirements.parent.name}-{digest}"
    python, complete = home / "bin" / "python", home / "complete"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test workers may want it first
        if not complete.exists():
            tool = uv.find_uv_bin()
            subprocess.run([tool, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
            loaded = _LOADED.get(requirements.parent.name)
            compiling = [] if loaded else ["--compile-bytecode"]
            install = [tool, "pip", "install", "--quiet", *compiling, "--python", python, "-r", requirements]
            subprocess.run(install, check=True)
            if loaded:
                subprocess.run([python, "-c", loaded], env=_writing_bytecode(), check=True)
            complete.touch()
    return python


def _writing_bytecode() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Training:
    """The processes of one job, by task and index."""

    def __init__(self, spec: JobSpec, program: Path, python: Path, folder: Path) -> None:
        self.folder = folder
        self._processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        replicas = [(task.name, index) for task in spec.tasks for index in range(task.replicas)]
        net = f"127.64.{random.randint(1, 254)}"
        addresses = {replica: f"{net}.{number}" for number, replica in enumerate(replicas, start=1)}
        for task, index in replicas:
            settings = frameworks.settings_for(spec, task, index, addresses)
            own = next(one for one in spec.tasks if one.name == task)
            self._start(task, index, [python, program, *own.command[2:]], {**own.env, **settings.env})

    def _start(self, task: str, index: int, command: list[str | Path], env: dict[str, str]) -> None:
        folder = self.folder_of(task, index)
        folder.mkdir()
        with (folder / "log").open("wb") as log:
            self._processes[task, index] = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **env}, stdout=log, stderr=subprocess.STDOUT
            )

    def folder_of(self, task: str, index: int = 0) -> Path:
        """The working folder of a process."""
        return self.folder / f"{task}-{index}"

    def log(self, task: str, index: int = 0) -> str:
        """The output of a process so far."""
        return (self.folder_of(task, index) / "log").read_text()

    def process(self, task: str, index: int = 0) -> subprocess.Popen[bytes]:
        """The process itself."""
        return self._processes[task, index]

    def exit_codes(self) -> dict[tuple[str, int], int]:
        """The exit codes of all processes; waits for their end."""
        try:
            return {replica: process.wait(TIMEOUT_SECONDS) for replica, process in self._processes.items()}
        except subprocess.TimeoutExpired:
            raise AssertionError(self.logs()) from None

    def logs(self) -> str:
        """The output of all processes so far."""
        return "\n".join(f"{task}-{index}:\n{self.log(task, index)}" for task, index in self._processes)

    def metric(self, name: str, task: str, index: int = 0) -> list[float]:
        """The values of a metric, in the order in which the process printed them."""
        lines = [line.split()[1:] for line in self.log(task, index).splitlines() if line.startswith("::metric ")]
        return [float(dict(pair.split("=") for pair in line)[name]) for line in lines]

    def end(self) -> None:
        """Kill the processes that are left."""
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def training(example: str, folder: Path) -> Iterator[Training]:
    """Run an example in the environment that its manifest names."""
    spec = spec_of(example)
    python = python_with(EXAMPLES / spec.tasks[0].environment / "environment.txt")
    running = Training(spec, EXAMPLES / example / spec.tasks[0].command[1], python, folder)
    try:
        yield running
    finally:
        running.end()
