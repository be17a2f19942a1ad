"""The process that stands for a pod's container: `python -I -S attendant.py FOLDER`, a child of the shim.

It pulls the image, creates and starts the container, copies its output, passes SIGTERM on, and ends with its exit code.
It tells the shim by `container.json` and a signal how far it is. It is level-triggered: it asks the engine for the
container, and goes on from there. So it also follows a container that an earlier attendant started, and one whose
engine was restarted meanwhile. Standard library only.
"""

import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

if __name__ == "__main__":
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))

from hekla.backends.local import cgroups, cpusets
from hekla.backends.local.containers import image_access, mounts, registries
from hekla.backends.local.containers.engine import CONFLICT, NOT_FOUND, Engine, EngineError
from hekla.backends.local.pod_folder import CONTAINER_REMOVED, ContainerState, PodFolder

RETRY_SECONDS = 1.0
PROGRESS_SECONDS = 2.0
_MIB = 2**20
_HEADER_BYTES = 8
NOT_FOUND_CODE, NOT_EXECUTABLE_CODE, FAILED_CODE, STOPPED_CODE = 127, 126, 125, 143
_STARTED = ("starting", "running")
_ENDED, _LIVE = ("exited", "stopped", "dead", "removing"), ("running", "paused", "stopping")
_WAIT_INTERVAL = "20ms"  # of Podman, which looks four times a second otherwise; Docker does not need it
_NOT_EXECUTED = re.compile(rb"failed to exec pid1: ([^\n]+)|\[FATAL tini [^\n]* failed: ([^\n]+)")
"""What the first process of a container says (of Podman or of Docker) if there is no such command."""
_OWN_COMMAND = "(the image's own)"
_MAX_HEAD_BYTES = 500


class ContainerRefused(Exception):
    """The container cannot run. `reason`: in one word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Attendant:
    """The container of the pod in this folder."""

    def __init__(self, folder: PodFolder) -> None:
        order = folder.order()
        if order is None or order["container"] is None:
            raise ValueError("it is no pod in a container")
        self._folder, self._order, self._cpus = folder, order["container"], order.get("cpus")
        self._engine, self._path = Engine(self._order["socket"]), f"/containers/{quote(self._order['name'])}"
        self._state = folder.container_state() or ContainerState(step="pulling")
        self._is_to_stop = self._is_started = False
        self._is_out_of_memory = False
        self._output_head = b""

    def run(self) -> int:
        """Follow the container to its end, also across restarts of the engine. Returns its exit code."""
        signal.signal(signal.SIGTERM, self._terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        while True:
            try:
                return self._follow()
            except OSError as error:
                self._tell(ContainerState(message=f"The container engine does not answer: {error}"))
                time.sleep(RETRY_SECONDS)
            except (ContainerRefused, EngineError) as error:
                otherwise = "EngineFailed" if self._state["step"] == "running" else "StartRefused"
                reason = error.reason if isinstance(error, ContainerRefused) else otherwise
                self._say(str(error))
                self._tell(ContainerState(reason=reason, message=str(error)))
                return FAILED_CODE

    def _follow(self) -> int:
        if not self._exists():
            self._create(self._image())
        status = self._found()["Status"]
        if status not in _ENDED:
            with self._engine.attach(self._order["name"]) as output:
                if status not in _LIVE:
                    self._check_mounts()
                    self._start()
                self._is_started = True
                if self._is_to_stop:
                    self._pass_on()
                pid = self._found().get("Pid", 0)
                groups = cgroups.memory_groups(pid)
                self._tell(ContainerState(step="running", message="", pid=pid))
                self._copy(output)
                self._is_out_of_memory = any(map(cgroups.was_oom_killed, groups))
            self._engine.request("POST", f"{self._path}/wait?interval={_WAIT_INTERVAL}", seconds=None)
        return self._end(self._found())

    def _exists(self) -> bool:
        """Whether there is the container. Raises ContainerRefused if there is none any more."""
        try:
            self._found()
        except EngineError as error:
            if error.status != NOT_FOUND:
                raise
            if self._state["step"] in _STARTED:
                raise ContainerRefused(CONTAINER_REMOVED, "Somebody removed the container of the pod") from error
            return False
        return True

    def _found(self) -> dict[str, Any]:
        """The state of the container, as the engine tells it."""
        found: dict[str, Any] = self._engine.request("GET", f"{self._path}/json")["State"]
        return found

    def _create(self, image: str) -> None:
        """Create the container of the image with this id: its name can mean another one by now."""
        state, body = ContainerState(step="creating", message=""), {**self._order["body"], "Image": image}
        if self._cpus:
            state["cpus"] = cpusets.wanted(self._cpus)
            body["HostConfig"] = {**body["HostConfig"], "CpusetCpus": state["cpus"]}
        self._tell(state)
        try:
            self._engine.request("POST", f"/containers/create?name={quote(self._order['name'])}", body)
        except EngineError as error:
            if error.status != CONFLICT:
                raise

    def _check_mounts(self) -> None:
        """Raise ContainerRefused unless the container, whose program does not run yet, has the parts of volumes."""
        try:
            wanted = Counter(mounts.identity(root, below) for root, below in self._order["parts"])
            is_mounted = not wanted or wanted <= mounts.of_process(self._found().get("Pid", 0))
        except OSError as error:
            raise ContainerRefused("StartRefused", f"A part of a volume cannot be mounted: {error}") from error
        if not is_mounted:
            raise ContainerRefused("StartRefused", "A part of a volume was replaced while it was mounted")

    def _start(self) -> None:
        if self._is_to_stop:
            sys.exit(STOPPED_CODE)
        self._tell(ContainerState(step="starting"))
        self._engine.request("POST", f"{self._path}/start")

    def _end(self, state: Mapping[str, Any]) -> int:
        end = ContainerState(exit_code=int(state.get("ExitCode", FAILED_CODE)))
        if end["exit_code"]:
            body = self._order["body"]
            command = body.get("Entrypoint") or body.get("Cmd") or [_OWN_COMMAND]
            end = _not_executed(self._output_head, command[0]) or end
            if state.get("OOMKilled") or self._is_out_of_memory:  # Podman 4.3 does not tell it
                end |= ContainerState(reason="OOMKilled", message="It took more memory than it asked for")
        self._tell(end)
        return end["exit_code"]

    def _copy(self, output: socket.socket) -> None:
        """Copy the content of the frames to our own output until the container ends."""
        with output.makefile("rb") as frames:
            while len(header := frames.read(_HEADER_BYTES)) == _HEADER_BYTES:
                left = int.from_bytes(header[4:], "big")
                while left and (data := frames.read1(left)):
                    left -= len(data)
                    self._output_head += data[: _MAX_HEAD_BYTES - len(self._output_head)]
                    os.write(1, data)

    # The image

    def _image(self) -> str:
        """The id of the image. Pulls it unless the engine has it and the pod's tenant may use it.

        Raises ContainerRefused.
        """
        image, pulled = self._order["image"], self._order["pulled"]
        try:
            credentials, is_guarded = registries.header(self._order["registries"], image, self._order["tenant"])
            found = self._image_id()
            if found and (
                registries.is_local(image) or image_access.may_use(pulled, found, credentials, is_guarded=is_guarded)
            ):
                return found
            self._pull(credentials)
            found = self._image_id()
        except (EngineError, ValueError) as error:
            raise ContainerRefused("ImagePullFailed", f"The image {image} cannot be pulled: {error}") from error
        if not found:
            raise ContainerRefused("ImagePullFailed", f"The image {image} was removed after its pull")
        image_access.note_pull(pulled, found, credentials)
        return found

    def _image_id(self) -> str:
        """The id of the image with this name, if the engine has it; else empty."""
        try:
            return str(self._engine.request("GET", f"/images/{quote(self._order['image'], safe='')}/json")["Id"])
        except EngineError as error:
            if error.status != NOT_FOUND:
                raise
            return ""

    def _pull(self, credentials: str) -> None:
        image = self._order["image"]
        self._say(f"Pulling the image {image}")
        self._tell(ContainerState(message=f"Pulling the image {image}"))
        headers = {"X-Registry-Auth": credentials} if credentials else {}
        progress = Progress()
        latest = time.monotonic()
        for line in self._engine.lines(f"/images/create?fromImage={quote(image, safe='')}", headers):
            if line.get("error"):
                raise ValueError(line["error"])
            progress.add(line)
            if progress.text and time.monotonic() >= latest + PROGRESS_SECONDS:
                latest = time.monotonic()
                self._say(progress.text)
                self._tell(ContainerState(message=f"Pulling the image {image}: {progress.text}"))

    # Signals, and what the shim and people are told

    def _terminate(self, _number: int, _frame: object) -> None:
        self._is_to_stop = True
        if self._state["step"] == "pulling":
            sys.exit(STOPPED_CODE)
        if self._is_started:
            self._pass_on()

    def _pass_on(self) -> None:
        with contextlib.suppress(EngineError, OSError):  # it has ended
            self._engine.request("POST", f"{self._path}/kill?signal=SIGTERM")

    def _tell(self, changes: ContainerState) -> None:
        state = ContainerState(**{**self._state, **changes})
        if state != self._state:
            self._state = state
            self._folder.write_container_state(state)
            os.kill(os.getppid(), signal.SIGUSR1)

    def _say(self, text: str) -> None:
        os.write(1, f"[hekla] {text}\n".encode(errors="replace"))


class Progress:
    """How far the pull of an image is: the sum of its parts, as far as the engine tells them."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[int, int]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Take one line of the engine's answer."""
        detail = line.get("progressDetail")
        if isinstance(detail, dict) and detail.get("total"):
            self._parts[str(line.get("id"))] = (int(detail.get("current", 0)), int(detail["total"]))

    @property
    def text(self) -> str:
        """In MiB; empty before the engine tells anything."""
        done, total = (sum(part[n] for part in self._parts.values()) for n in (0, 1))
        return f"{done / _MIB:.0f} of {total / _MIB:.0f} MiB" if total else ""


def _not_executed(output_head: bytes, command: str) -> ContainerState | None:
    """The end of a container whose command could not be executed, by its first output; None if it could."""
    found = _NOT_EXECUTED.search(output_head)
    if found is None:
        return None
    problem = (found[1] or found[2]).decode(errors="replace")
    if "No such file" in problem:
        message = f"There is no command “{command}” in the image"
        return ContainerState(reason="CommandNotFound", message=message, exit_code=NOT_FOUND_CODE)
    message = f"The command “{command}” cannot be run: {problem}"
    return ContainerState(reason="CommandNotExecutable", message=message, exit_code=NOT_EXECUTABLE_CODE)


if __name__ == "__main__":
    sys.exit(Attendant(PodFolder(sys.argv[1])).run())
