"""Build virtual environments from a list of requirements: once each, by the shim of the first pod that needs it.

A file beside the environment is locked during the build; other shims wait for it. The marker inside is written last, so
an interrupted build starts again. Standard library only, because this runs in the shim.
"""

import fcntl
import os
import shutil
import time
from typing import Protocol

from hekla.backends.local.pod_folder import EnvironmentOrder
from hekla.backends.local.shim_errors import PodStartError

MARKER = ".hekla-ready"
TAIL_CHARACTERS = 2000
_LOOK_EVERY_SECONDS = 0.1


class EnvironmentBuilder(Protocol):
    """What a build needs from the shim that runs it."""

    def note(self, line: str) -> None:
        """Write one line to the pod's log."""

    def pause(self, seconds: float) -> None:
        """Sleep. Raises StopRequested."""

    def run_step(self, argv: list[str], env: dict[str, str]) -> int:
        """Run a command with its output in the pod's log. Returns its exit code.

        Raises PodStartError, StopRequested.
        """

    def log_tail(self, characters: int) -> str:
        """The end of the pod's log."""


def is_ready(wanted: EnvironmentOrder) -> bool:
    """Whether the environment is complete."""
    return os.path.exists(os.path.join(wanted["folder"], MARKER))


def build_environment(wanted: EnvironmentOrder, pod: EnvironmentBuilder) -> None:
    """Build the environment, or wait for another shim that builds it. Raises PodStartError, StopRequested."""
    os.makedirs(os.path.dirname(wanted["folder"]), exist_ok=True)
    with open(wanted["folder"] + ".lock", "w", encoding="utf-8") as lock:
        _wait_for(lock.fileno(), wanted, pod)
        if not is_ready(wanted):
            _build_alone(wanted, pod)


def _wait_for(lock: int, wanted: EnvironmentOrder, pod: EnvironmentBuilder) -> None:
    has_noted = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not has_noted:
                pod.note(f"Another pod builds the environment {wanted['name']}; waiting for it")
            has_noted = True
            pod.pause(_LOOK_EVERY_SECONDS)
        else:
            return


def _build_alone(wanted: EnvironmentOrder, pod: EnvironmentBuilder) -> None:
    folder, requirements = wanted["folder"], wanted["folder"] + ".txt"
    started = time.monotonic()
    pod.note(f"Building the environment {wanted['name']}")
    shutil.rmtree(folder, ignore_errors=True)
    with open(requirements, "w", encoding="utf-8") as file:
        file.write("\n".join(wanted["requirements"]) + "\n")
    _uv(wanted, pod, ["venv", "--python", wanted["python"], folder])
    install = ["pip", "install", "--compile-bytecode", "--python", folder]  # pods may not write there: they would
    _uv(wanted, pod, [*install, "--requirements", requirements])  # compile the packages again each time
    with open(os.path.join(folder, MARKER), "x", encoding="utf-8"):
        pass
    pod.note(f"The environment {wanted['name']} is ready after {time.monotonic() - started:.1f} s")


def _uv(wanted: EnvironmentOrder, pod: EnvironmentBuilder, arguments: list[str]) -> None:
    exit_code = pod.run_step([*wanted["uv"], *arguments], wanted["env"])
    if exit_code:
        message = f"The environment {wanted['name']} could not be built"
        raise PodStartError("EnvironmentFailed", f"{message}:\n{pod.log_tail(TAIL_CHARACTERS)}")
