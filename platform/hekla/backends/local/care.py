"""What a pod's folder says is so, after whatever happened to its shim.

`look` is level-triggered: it reads, and sets right what a crash left behind. A pod that was never launched is launched
again; one that was launched and whose shim is gone is ended for certain and called lost, never run twice.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from hekla.backends.base import BackendError
from hekla.backends.local import limits, orders, processes
from hekla.backends.local.podfolder import FINAL, Order, PodFolder, Status, boot_id

LAUNCH = Path(__file__).with_name("launch.py")
LAUNCH_PATIENCE_SECONDS = 2.0
_KILL_ROUNDS = 50


def look(folder: PodFolder, *, patience_seconds: float = LAUNCH_PATIENCE_SECONDS) -> Status | None:
    """The present status; None where there is no such pod.

    A shim that was sent for may take `patience_seconds` to appear before another is. Raises BackendError.
    """
    status = folder.status()
    if status and status["phase"] in FINAL:
        return status
    holder = folder.holder()
    status, order = folder.status(), folder.order()
    if order is None or (status and status["phase"] in FINAL):
        return status
    if holder is None:
        return _set_right(folder, order, status, patience_seconds)
    return status or waiting(folder)


def end(folder: PodFolder, phase: str, reason: str, message: str) -> Status:
    """Write the final status of a pod that no shim cares for."""
    status = folder.status() or Status()
    status.update(Status(phase=phase, at=time.time(), reason=reason, message=message, exit_code=None))
    folder.write_status(status)
    return status


def _set_right(folder: PodFolder, order: Order, status: Status | None, patience_seconds: float) -> Status:
    if order["boot"] != boot_id():
        return end(folder, "lost", "NodeRestarted", "The machine was started anew while the pod was there")
    if status and status.get("launched"):
        _kill_remains(order, status)
        return end(folder, "lost", "ShimDied", "The process that watched over the pod was killed; the pod was ended")
    if request := folder.stop_request():
        return end(folder, "failed", "Stopped", request["reason"])
    if not 0 <= time.time() - folder.launch_asked_at() < patience_seconds:
        _launch(folder)
    return status or waiting(folder)


def waiting(folder: PodFolder) -> Status:
    """A pod whose shim has said nothing yet."""
    return Status(phase="preparing", at=os.stat(folder.path).st_mtime, reason="", message="", exit_code=None)


def _kill_remains(order: Order, status: Status) -> None:
    if order["cgroup"]:
        limits.end(order["cgroup"])
    for _ in range(_KILL_ROUNDS):
        left = processes.remains(orders.mark(order), status.get("pid"), status.get("pid_started", ""))
        if not left:
            return
        processes.kill(left)
        time.sleep(0.01)


def _launch(folder: PodFolder) -> None:
    """Send for a shim. What it cannot even write down itself goes to `shim.log`."""
    folder.note_launch()
    command = [sys.executable, "-I", "-S", str(LAUNCH), folder.path]
    clean = {"PATH": orders.SYSTEM_PATH, "LANG": "C.UTF-8"}
    with open(os.path.join(folder.path, "shim.log"), "ab") as log:
        try:
            subprocess.run(command, env=clean, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise BackendError(f"The shim of the pod could not be started: {error}") from error
