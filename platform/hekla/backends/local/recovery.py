"""The status of a pod from its folder, also after its shim has died.

`settle_status` is level-triggered: it reads the status, and cleans up after a crash. A pod whose process was never
launched gets a new shim. A launched pod without a shim is killed and reported as lost: it never runs twice.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from hekla.backends.base import BackendError
from hekla.backends.local import cgroups, orders, processes
from hekla.backends.local.containers import removal
from hekla.backends.local.pod_folder import FINAL, PodFolder, ShimOrder, ShimStatus, boot_id

LAUNCH = Path(__file__).with_name("launch.py")
LAUNCH_SECONDS = 2.0
_KILL_ROUNDS = 50


def settle_status(folder: PodFolder, *, launch_seconds: float = LAUNCH_SECONDS) -> ShimStatus | None:
    """The present status; None if there is no such pod.

    A new shim has `launch_seconds` to appear before another is launched. Raises BackendError.
    """
    status = folder.status()
    if status and status["phase"] in FINAL:
        return status
    holder = folder.holder()
    status, order = folder.status(), folder.order()
    if order is None or (status and status["phase"] in FINAL):
        return status
    if holder is None:
        return _recover(folder, order, status, launch_seconds)
    return status or preparing_status(folder)


def write_final_status(folder: PodFolder, phase: str, reason: str, message: str) -> ShimStatus:
    """Write and return the final status of a pod without a shim."""
    status = folder.status() or ShimStatus()
    status.update(ShimStatus(phase=phase, at=time.time(), reason=reason, message=message, exit_code=None))
    folder.write_status(status)
    return status


def _recover(folder: PodFolder, order: ShimOrder, status: ShimStatus | None, launch_seconds: float) -> ShimStatus:
    container, state = order["container"], folder.container_state()
    is_created = container is not None and state is not None and state["step"] != "pulling"
    if order["boot"] != boot_id():
        if container:
            removal.remove(container["socket"], container["name"])
        return write_final_status(
            folder, "lost", "NodeRestarted", "The machine was started anew while the pod was there"
        )
    if status and status.get("launched"):
        _kill_processes(folder, order, status)
        return write_final_status(
            folder, "lost", "ShimDied", "The process that watched over the pod was killed; the pod was ended"
        )
    request = folder.stop_request()
    if request and not is_created:  # a shim must end the container
        return write_final_status(folder, "failed", "Stopped", request["reason"])
    if not 0 <= time.time() - folder.launched_at() < launch_seconds:
        _launch(folder)
    return status or preparing_status(folder)


def preparing_status(folder: PodFolder) -> ShimStatus:
    """The status of a pod whose shim has written none yet."""
    return ShimStatus(phase="preparing", at=os.stat(folder.path).st_mtime, reason="", message="", exit_code=None)


def _kill_processes(folder: PodFolder, order: ShimOrder, status: ShimStatus) -> None:
    for group in order["groups"]:
        cgroups.kill(group)
    for _ in range(_KILL_ROUNDS):
        leader, started = status.get("pid"), status.get("pid_started", "")
        left = processes.remains(folder.path, orders.mark(order), leader, started)
        if not left:
            return
        processes.kill(left)
        time.sleep(0.01)


def _launch(folder: PodFolder) -> None:
    """Launch a shim. Its own output, for example a traceback, goes to `shim.log`."""
    folder.note_launch()
    command = [sys.executable, "-I", "-S", str(LAUNCH), folder.path]
    clean = {"PATH": orders.SYSTEM_PATH, "LANG": "C.UTF-8"}
    with open(os.path.join(folder.path, "shim.log"), "ab") as log:
        try:
            subprocess.run(command, env=clean, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise BackendError(f"The shim of the pod could not be started: {error}") from error
