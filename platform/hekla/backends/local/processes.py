"""Find and end all processes of a pod, also those that have left its group.

While the shim runs it is the reaper of all descendants, so the process tree shows them (`descendants`). After its end,
they are found by the pod's first session and by the mark in their environment (`remains`).

Standard library only. Without /proc (macOS), only the process group is found.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

MARK, HOSTS_FILE = "HEKLA_POD", "HEKLA_HOSTS_FILE"


class ProcessInfo(NamedTuple):
    """One row of the process table. `started`: ticks since boot; together with the pid it identifies the process."""

    pid: int
    parent: int
    session: int
    started: str


def process_table() -> Iterator[ProcessInfo]:
    """All running processes in /proc."""
    return (process for pid in _pids() if (process := read_process(pid)))


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return []


def read_process(pid: int) -> ProcessInfo | None:
    """The row of `pid`; None if it has ended, waits to be reaped, or cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in b"ZX":
        return None
    return ProcessInfo(pid, int(fields[1]), int(fields[3]), fields[19].decode())


def descendants(ancestor: int) -> list[int]:
    """The pids of all descendants of a process."""
    children: dict[int, list[int]] = {}
    for process in process_table():
        children.setdefault(process.parent, []).append(process.pid)
    found: list[int] = []
    pending = [ancestor]
    while pending:
        offspring = children.get(pending.pop(), [])
        found += offspring
        pending += offspring
    return found


def remains(folder: str, mark: str, leader: int | None, leader_started: str) -> list[int]:
    """The running processes of a pod whose shim is dead: those with its folder and mark, and the leader's session.

    The system reuses a session's number only after its last member has ended. The mark alone is not enough: a copy of a
    data folder has pods with the same names, and its console must not end those of the original.
    """
    now = read_process(leader) if leader else None
    session = leader if now is None or now.started == leader_started else None
    return [p.pid for p in process_table() if p.session == session or _mark_of(p.pid, f"{folder}{os.sep}") == mark]


def marks(below: str) -> set[str]:
    """The marks of pods with a running process whose folders are below `below`."""
    return {mark for pid in _pids() if (mark := _mark_of(pid, below))}  # an ended process has no environment


def kill(pids: list[int]) -> None:
    """Send SIGKILL to each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def signal_group(group: int, number: int) -> None:
    """Send signal `number` to the process group, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _mark_of(pid: int, below: str) -> str:
    environment = _environment(pid)
    if f"\0{HOSTS_FILE}={below}".encode() not in environment:
        return ""
    _before, _name, rest = environment.partition(f"\0{MARK}=".encode())
    return rest.partition(b"\0")[0].decode(errors="replace")


def _environment(pid: int) -> bytes:
    """The variables of a process, each after a zero byte. They are not split: most processes are no pods."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return b"\0" + file.read()
    except OSError:
        return b""
