"""The shim of a pod in a container: it runs the attendant, and publishes what that tells. Standard library only."""

import contextlib
import os
import signal
import sys

from hekla.backends.local import cpusets
from hekla.backends.local.containers import removal
from hekla.backends.local.pod_folder import CONTAINER_REMOVED, ContainerState, PodFolder, ShimOrder, ShimStatus
from hekla.backends.local.processes import read_process
from hekla.backends.local.shim import MAX_TRIES, RETRY_SECONDS, Shim
from hekla.backends.local.shim_errors import PodStartError

ATTENDANT = os.path.join(os.path.dirname(__file__), "attendant.py")


class ContainerShim(Shim):
    """One pod's life. A shim that finds a container of an earlier one goes on with it."""

    def __init__(self, folder: PodFolder, order: ShimOrder, tries: int) -> None:
        super().__init__(folder, order, tries)
        self._state = folder.container_state() or ContainerState(step="pulling")

    def _refuse_if_hopeless(self) -> None:
        if self._state["step"] == "pulling":
            super()._refuse_if_hopeless()

    def _prepare(self) -> None:
        if self._state["step"] == "pulling":
            self.check_stop()
            self._publish("preparing")

    def _run_pod(self) -> tuple[int, bool]:
        attendant = [sys.executable, "-I", "-S", ATTENDANT, self._folder.path]
        for _ in range(MAX_TRIES):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until the attendant can handle it
            pid = self._spawn(attendant, {}, "/")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            exit_code, stopped = self._wait(pid, self._order["grace_seconds"])
            self._look_around()
            if stopped or "reason" in self._state or "exit_code" in self._state:
                return self._state.get("exit_code", exit_code), stopped
        raise PodStartError("AttendantDied", "The process that watched over the container was killed again and again")

    def _look_around(self) -> None:
        """Publish what is new about the container."""
        state = self._folder.container_state()
        if state is not None and state != self._state:
            self._publish_state(state)
        if self._state["step"] == "running" and (cpus := self._order.get("cpus")):
            self._cpus = self._cpus or self._state.get("cpus", "")
            with contextlib.suppress(OSError):  # the next signal repeats it
                if group := cpusets.group_of(self._state.get("pid", 0)):
                    self._keep_on_cpus(cpus, group)

    def _publish_state(self, state: ContainerState) -> None:
        self._state = state
        if "reason" in state or "exit_code" in state:
            return
        pid = state.get("pid", 0)
        process = read_process(pid)
        self._status.update(ShimStatus(pid=pid, pid_started=process.started if process else ""))
        self._status["message"] = state.get("message", "")
        self._publish_when_possible("running" if state["step"] == "running" else "preparing")

    def _verdict(self, exit_code: int, stopped: bool) -> tuple[str, str, str, int]:
        reason = self._state.get("reason", "")
        if stopped or not reason:
            return super()._verdict(exit_code, stopped)
        return "lost" if reason == CONTAINER_REMOVED else "failed", reason, self._state["message"], exit_code

    def _remove_remains(self) -> None:
        """Remove the container. While the engine does not do that, the pod does not end: the container may run."""
        super()._remove_remains()
        container = self._order["container"]
        while container and self._state["step"] != "pulling" and os.path.isdir(self._folder.path):
            problem = removal.remove(container["socket"], container["name"])
            if not problem:
                return
            if self._status.get("message") != problem:
                self._status["message"] = problem
                self._publish_when_possible(self._status["phase"])
            self._sleep(RETRY_SECONDS)
