"""The folder of one pod: the files by which the backend and the shim communicate, also after a crash of either.

    order.json   the order; one rename creates the folder with it, and so claims the pod
    lock         held by the shim for its whole life; the system releases it, however the shim ends
    stop.json    the stop request; written before the shim is signalled, so a later shim finds it too
    status.json  the status, replaced as a whole at each change
    log, hosts, work/, tmp/, volumes/

Beside the folders of a job's pods is `.claims`, with the volumes that they share.

Readers get the holder of the lock *before* they read the status: if the lock was free, a status that is not final can
no longer change by itself.

Uses only a small part of the standard library: the start of the shim is part of the time from submission to running.
"""

import fcntl
import json
import os
import signal
import struct
import sys
from typing import TypedDict, cast

CLAIMS = ".claims"
FINAL = frozenset({"succeeded", "failed", "lost"})
_FLOCK = "qqihh" if sys.platform == "darwin" else "hhqqi"


class ShimStatus(TypedDict, total=False):
    """The status of a pod. `launched` is written before its process is created, so it is never created twice."""

    phase: str
    at: float
    boot: str
    tries: int
    launched: bool
    pid: int
    pid_started: str
    reason: str
    message: str
    exit_code: int | None


class StopRequest(TypedDict):
    """A request to stop the pod: SIGTERM now, SIGKILL after `grace_seconds`."""

    reason: str
    at: float
    grace_seconds: float


class ShimOrder(TypedDict):
    """The complete order for the shim, which decides nothing itself."""

    key: tuple[str, str, int, int]
    boot: str
    command: list[str]
    working_dir: str
    env: dict[str, str]
    address: str
    grace_seconds: float
    wake: str
    environment: "EnvironmentOrder | None"
    cgroup: str
    limits: dict[str, str]


class EnvironmentOrder(TypedDict):
    """A virtual environment that must exist in `folder` before the pod runs."""

    name: str
    folder: str
    requirements: list[str]
    python: str
    uv: list[str]
    env: dict[str, str]


class PodFolder:
    """Paths and atomic reads and writes of one pod's folder."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.log = os.path.join(path, "log")
        self.hosts = os.path.join(path, "hosts")
        self.work = os.path.join(path, "work")
        self.tmp = os.path.join(path, "tmp")
        self.volumes = os.path.join(path, "volumes")
        self.claims = os.path.join(os.path.dirname(path), CLAIMS)
        self._order = os.path.join(path, "order.json")
        self._status = os.path.join(path, "status.json")
        self._stop = os.path.join(path, "stop.json")
        self._lock = os.path.join(path, "lock")
        self.lasting = frozenset({self.log, self._status})
        """The files that stay when the job is deleted. With its final status, the pod never runs again."""

    def order(self) -> ShimOrder | None:
        """The order, or None if there is no such pod or it was stopped before its start."""
        return cast("ShimOrder | None", _read(self._order))

    def write_order(self, order: ShimOrder) -> None:
        """Write the order, only into a folder that is not claimed yet."""
        _write(self._order, order)

    def status(self) -> ShimStatus | None:
        """The status, or None before a shim has written one. If the file cannot be parsed, the pod is lost."""
        try:
            return cast("ShimStatus | None", _read(self._status))
        except ValueError as error:
            message = f"The record of the pod is damaged: {error}"
            return ShimStatus(phase="lost", at=os.stat(self._status).st_mtime, reason="Unreadable", message=message)

    def write_status(self, status: ShimStatus) -> None:
        """Replace the status as a whole. It is on the disk when this returns."""
        _write(self._status, status)

    def stop_request(self) -> StopRequest | None:
        """The request to stop this pod, if there is one."""
        return cast("StopRequest | None", _read(self._stop))

    def request_stop(self, request: StopRequest) -> None:
        """Write the stop request, then wake the shim by a signal; the shim reads the request."""
        _write(self._stop, request)
        if (shim := self.holder()) is not None:
            signal_holder(self, shim, signal.SIGUSR1)

    def acquire(self) -> int | None:
        """Take the lock for the life of this process; None if another process holds it.

        Never close another handle of the file: that would release the lock.
        """
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def holder(self) -> int | None:
        """The pid of the process that holds the lock: the running shim; or None. Does not affect the lock."""
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            question = _pack_lock(fcntl.F_WRLCK)
            kind, pid = _unpack_lock(fcntl.fcntl(handle, fcntl.F_GETLK, question))
        finally:
            os.close(handle)
        return None if kind == fcntl.F_UNLCK else pid

    def launched_at(self) -> float:
        """When a shim was last launched, in seconds of the epoch; 0 if never."""
        try:
            return os.stat(self._lock).st_mtime
        except FileNotFoundError:
            return 0.0

    def note_launch(self) -> None:
        """Record that a shim is launched now."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.utime(handle)
        os.close(handle)


def signal_holder(folder: PodFolder, pid: int, number: int) -> None:
    """Signal `pid` if it still is the shim. With a pidfd, the number cannot pass to another process in between."""
    if not hasattr(os, "pidfd_open"):
        os.kill(pid, number)
        return
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if folder.holder() == pid:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def boot_id() -> str:
    """An id that differs after each boot of the machine; empty if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def poke(path: str) -> None:
    """Wake the reader of the pipe. Without a reader, or with a full pipe, nothing happens; that only costs time."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(handle, b".")
    except OSError:
        pass
    finally:
        os.close(handle)


def _pack_lock(kind: int) -> bytes:
    return struct.pack(_FLOCK, 0, 0, 0, kind, 0) if _FLOCK[0] == "q" else struct.pack(_FLOCK, kind, 0, 0, 0, 0)


def _unpack_lock(answer: bytes) -> tuple[int, int]:
    fields = struct.unpack(_FLOCK, answer[: struct.calcsize(_FLOCK)])
    return (fields[3], fields[2]) if _FLOCK[0] == "q" else (fields[0], fields[4])


def _read(path: str) -> object:
    try:
        with open(path, encoding="utf-8") as file:
            return cast(object, json.load(file))
    except FileNotFoundError:
        return None


def _write(path: str, value: object) -> None:
    draft = f"{path}.{os.urandom(4).hex()}"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, path)
