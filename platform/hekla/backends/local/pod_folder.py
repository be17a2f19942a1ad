"""The folder of one pod: the files by which the backend and the shim communicate, also after a crash of either.

    order.json   the order; one rename creates the folder with it, and so claims the pod
    lock         held by the shim for its whole life; the system releases it, however the shim ends
    stop.json    the stop request; written before the shim is signalled, so a later shim finds it too
    status.json  the status, replaced as a whole at each change
    container.json  how far the container of the pod is
    log.times    when the parts of the log arrived
    commands     the socket at which the pod's first process takes further commands
    log, hosts, passwd, group, root/, work/, tmp/, volumes/

Beside the folders of a job's pods are `.claims`, with the volumes that they share, and `.run`, where they find each
other's sockets.

Readers get the holder of the lock *before* they read the status: if the lock was free, a status that is not final can
no longer change by itself.

Uses only a small part of the standard library: the start of the shim is part of the time from submission to running.
"""

import errno
import fcntl
import json
import os
import signal
import stat
import struct
import sys
import time
from typing import TYPE_CHECKING, BinaryIO, NotRequired, TypedDict, cast

from hekla.backends.local.sandbox.order import SandboxOrder

if TYPE_CHECKING:
    from hekla.backends.local.containers.order import ContainerOrder
    from hekla.backends.local.cpusets import CpuOrder

CLAIMS, RUN = ".claims", ".run"
FINAL = frozenset({"succeeded", "failed", "lost"})
PHASES = FINAL | {"preparing", "running"}
_MAX_BYTES = 32 * 2**20
"""An order has the command and the environment, and the addresses of the job's other pods."""
CONTAINER_REMOVED = "ContainerRemoved"
"""The reason of a pod whose container somebody removed."""
_KEY_PARTS = 4
_LATEST = 1e11
_NO_LOCK = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO})
"""The file is missing, or something that is no file is in its place: no shim holds it."""
_FLOCK = "qqihh" if sys.platform == "darwin" else "hhqqi"


class ShimStatus(TypedDict, total=False):
    """The status of a pod. `launched` is written before its process is created, so it is never created twice.

    `cpus`: those that it has alone, as Linux writes them.
    """

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
    cpus: str


class StopRequest(TypedDict):
    """A request to stop the pod: SIGTERM now, SIGKILL after `grace_seconds`."""

    reason: str
    at: float
    grace_seconds: float


class ContainerState(TypedDict, total=False):
    """How far the container of a pod is.

    `step`: pulling, creating, starting, running: written before each begins, except running. `pid`: on this machine.
    `exit_code`: if it ended. `reason`: why it cannot run, or ran out of memory. `message`: for people. `cpus`: on which
    it was created.
    """

    step: str
    pid: int
    exit_code: int
    reason: str
    message: str
    cpus: str


class ShimOrder(TypedDict):
    """The complete order for the shim, which decides nothing itself. `gpus`: the ids of those that the pod holds alone;
    older orders do not have it. `cpus`: only if the cluster gives pods CPUs of their own. `frozen`: the ended
    pod whose files this one has, as `names` writes it.
    """

    key: tuple[str, str, int, int]
    boot: str
    command: list[str]
    working_dir: str
    env: dict[str, str]
    address: str
    grace_seconds: float
    wake: str
    environment: "EnvironmentOrder | None"
    groups: dict[str, dict[str, str]]
    sandbox: SandboxOrder | None
    container: "ContainerOrder | None"
    gpus: NotRequired[list[str]]
    cpus: "NotRequired[CpuOrder]"
    frozen: NotRequired[str]


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
        self.log_times = os.path.join(path, "log.times")
        self.commands = os.path.join(path, "commands")
        self.hosts = os.path.join(path, "hosts")
        self.passwd = os.path.join(path, "passwd")
        self.group = os.path.join(path, "group")
        self.root = os.path.join(path, "root")
        self.work = os.path.join(path, "work")
        self.tmp = os.path.join(path, "tmp")
        self.volumes = os.path.join(path, "volumes")
        self.claims = os.path.join(os.path.dirname(path), CLAIMS)
        self.run = os.path.join(os.path.dirname(path), RUN)
        self._order = os.path.join(path, "order.json")
        self._status = os.path.join(path, "status.json")
        self._stop = os.path.join(path, "stop.json")
        self._container = os.path.join(path, "container.json")
        self._lock = os.path.join(path, "lock")
        self.lasting = frozenset({self.log, self.log_times, self._status})
        """The files that stay when the job is deleted. With its final status, the pod never runs again."""

    def with_files_of(self, source: "PodFolder") -> "PodFolder":
        """This folder, with the working folder and the volumes of an ended pod in place of its own."""
        found = PodFolder(self.path)
        found.work, found.volumes, found.claims = source.work, source.volumes, source.claims
        return found

    def order(self) -> ShimOrder | None:
        """The order, or None if there is no such pod or it was stopped before its start.

        Raises ValueError if it is damaged.
        """
        order = _read(self._order)
        if order is not None and not _is_order(order):
            raise ValueError("it is no order")
        return cast("ShimOrder | None", order)

    def write_order(self, order: ShimOrder) -> None:
        """Write the order, only into a folder that is not claimed yet."""
        _write(self._order, order)

    def status(self) -> ShimStatus | None:
        """The status, or None before a shim has written one. If the file cannot be parsed, the pod is lost."""
        try:
            status = _read(self._status)
            if status is None or _is_status(status):
                return cast("ShimStatus | None", status)
            return damaged_status("it has no phase or time")
        except ValueError as error:
            return damaged_status(str(error))

    def write_status(self, status: ShimStatus) -> None:
        """Replace the status as a whole. It is on the disk when this returns."""
        _write(self._status, status)

    def stop_request(self) -> StopRequest | None:
        """The request to stop this pod, if there is one that can be read."""
        try:
            request = _read(self._stop)
            return cast("StopRequest", request) if _is_stop_request(request) else None
        except ValueError:
            return None

    def request_stop(self, request: StopRequest) -> None:
        """Write the stop request, then wake the shim by a signal; the shim reads the request."""
        _write(self._stop, request)
        if (shim := self.holder()) is not None:
            signal_holder(self, shim, signal.SIGUSR1)

    def write_container_state(self, state: ContainerState) -> None:
        """Replace the state of the pod's container as a whole."""
        _write(self._container, state)

    def container_state(self) -> ContainerState | None:
        """How far the container is; None for processes, and before the first step."""
        try:
            found = _read(self._container)
        except ValueError:
            return None
        return cast("ContainerState", found) if isinstance(found, dict) and "step" in found else None

    def acquire(self) -> int | None:
        """Take the lock for the life of this process; None if another process holds it.

        Never close another handle of the file: that would release the lock.
        """
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def holder(self) -> int | None:
        """The pid of the process that holds the lock: the running shim; or None. Does not affect the lock."""
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in _NO_LOCK:
                return None
            raise
        try:
            question = _pack_lock(fcntl.F_WRLCK)
            kind, pid = _unpack_lock(fcntl.fcntl(handle, fcntl.F_GETLK, question))
        finally:
            os.close(handle)
        return None if kind == fcntl.F_UNLCK else pid

    def launched_at(self) -> float:
        """When a shim was last launched, in seconds of the epoch; 0 if never."""
        try:
            return os.lstat(self._lock).st_mtime
        except FileNotFoundError:
            return 0.0

    def note_launch(self) -> None:
        """Record that a shim is launched now."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading, if it is one: a pod may have put a link to a secret or a pipe without end in its place.

    Raises FileNotFoundError, and OSError for anything else than a regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(handle, "rb")


def damaged_status(why: str) -> ShimStatus:
    """The status of a pod whose record cannot be read."""
    message = f"The record of the pod is damaged: {why}"
    return ShimStatus(phase="lost", at=time.time(), reason="Unreadable", message=message)


def _is_status(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("at"), int | float) or not 0 <= value["at"] < _LATEST:
        return False
    texts = [value.get(name, "") for name in ("phase", "reason", "message", "boot", "pid_started", "cpus")]
    numbers = [value.get(name) or 0 for name in ("exit_code", "pid", "tries")]
    is_typed = all(isinstance(text, str) for text in texts) and all(_is_number(number) for number in numbers)
    return is_typed and value.get("phase") in PHASES


def _is_number(value: object) -> bool:
    """Whether it is a whole number that a database can hold."""
    return isinstance(value, int) and abs(value) < 2**31


def _is_stop_request(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("reason"), str):
        return False
    return all(isinstance(value.get(name), int | float) for name in ("at", "grace_seconds"))


def _is_order(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("key"), list):
        return False
    if not isinstance(value.get("groups"), dict) or len(value["key"]) != _KEY_PARTS:
        return False
    return all(isinstance(value.get(name), str) for name in ("boot", "address", "wake"))


def _read(path: str) -> object:
    """The content of a file, or None if it does not exist. Raises ValueError if it is no readable document."""
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"it cannot be opened: {error.strerror}") from error
    if len(text) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES // 2**20} MiB")
    try:
        return cast(object, json.loads(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _write(path: str, value: object) -> None:
    draft = f"{path}.{os.urandom(4).hex()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.rename(draft, path)
    except IsADirectoryError:  # not of our making; it is deleted with the pod
        os.rename(path, f"{draft}.aside")
        os.rename(draft, path)
