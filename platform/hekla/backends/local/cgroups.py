"""Memory and CPU limits by control groups, version 2 or 1, if the system allows it.

With version 2 a pod has one group; with version 1 it has one for memory and one for CPU. All functions are idempotent.
Standard library only, because the shim uses it.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping

ROOT = "/sys/fs/cgroup"
MEMORY, CPU = "memory", "cpu"
NEEDED = frozenset({MEMORY, CPU})
CPU_PERIOD_MICROSECONDS = 100_000
LEAST_QUOTA_MICROSECONDS = 1_000
"""The kernel refuses a smaller quota, so requests below 10 millicores are limited to 10."""
_CPU_FILES = "cpu."
_KILL_ROUNDS = 50
Parents = Mapping[str, str]
"""The parent groups of all pods, by what they limit: `memory cpu` (version 2), or `memory` and `cpu` (version 1)."""


def create_parents(name: str, root: str = ROOT, own: Mapping[str, str] | None = None) -> Parents:
    """Create the parents of the pods' control groups; empty if the system does not allow any.

    `own`: our own groups, by controller; "" for that of version 2. The parent is not inside our own group of version 2,
    because a group with processes cannot delegate limits.
    """
    own = own_groups() if own is None else own
    parent = os.path.normpath(f"{root}/{own.get('', '/')}")
    while parent.startswith(root):
        if _delegates(parent) and (created := _create_delegating(os.path.join(parent, name))):
            return {f"{MEMORY} {CPU}": created}
        parent = os.path.dirname(parent)
    found = {one: os.path.normpath(f"{root}/{one}/{own.get(one, '/')}/{name}") for one in (MEMORY, CPU)}
    return {one: path for one, path in found.items() if _create_plain(path, _FILES[one])}


_FILES = {MEMORY: "memory.limit_in_bytes", CPU: "cpu.cfs_quota_us"}
"""Of version 1: a file that every group of this controller has."""


def groups_of(parents: Parents, pod: str, cpu: float, memory: float) -> dict[str, dict[str, str]]:
    """The groups of a pod, with the contents of their files. `cpu`: in millicores; `memory`: in bytes; 0: no limit."""
    quota = max(LEAST_QUOTA_MICROSECONDS, int(cpu * CPU_PERIOD_MICROSECONDS / 1000))
    files: dict[str, dict[str, str]] = {
        MEMORY: {"memory.limit_in_bytes": str(int(memory)), "memory.memsw.limit_in_bytes": str(int(memory))},
        CPU: {"cpu.cfs_period_us": str(CPU_PERIOD_MICROSECONDS), "cpu.cfs_quota_us": str(quota)},
        f"{MEMORY} {CPU}": {
            "memory.oom.group": "1",
            **({"memory.max": str(int(memory)), "memory.swap.max": "0"} if memory else {}),
            **({"cpu.max": f"{quota} {CPU_PERIOD_MICROSECONDS}"} if cpu else {}),
        },
    }
    without_limit = {MEMORY: not memory, CPU: not cpu}
    return {
        os.path.join(parent, pod): {} if without_limit.get(limited, False) else files[limited]
        for limited, parent in parents.items()
    }


def limited(parents: Parents) -> frozenset[str]:
    """What is limited: `memory`, `cpu`, both or neither."""
    return frozenset(name for controllers in parents for name in controllers.split())


def create(group: str, files: Mapping[str, str]) -> None:
    """Create one group of a pod, with its limits except that of CPU. Raises OSError."""
    os.makedirs(group, exist_ok=True)
    for name, value in files.items():
        if "sw" in name and not os.path.exists(os.path.join(group, name)):
            continue  # kernels without limits of swap lack these files
        if not name.startswith(_CPU_FILES):
            write(os.path.join(group, name), value)


def limit_cpu(group: str, files: Mapping[str, str]) -> None:
    """Put the group's limit of CPU in force. Raises OSError.

    Only once the pod's own program runs: with 10 millicores, preparing its sandbox would take longer than a second.
    """
    for name, value in files.items():
        if name.startswith(_CPU_FILES):
            write(os.path.join(group, name), value)


def enter(group: str) -> None:
    """Move this process, and all processes that it starts later, into the group. Raises OSError."""
    write(os.path.join(group, "cgroup.procs"), "0")


def memory_groups(pid: int) -> list[str]:
    """The groups by which version 2 or 1 counts the memory of a process; none if it has ended."""
    own, places = own_groups(str(pid)), {MEMORY: f"{ROOT}/{MEMORY}", "": ROOT}
    return [place + own[controller] for controller, place in places.items() if controller in own]


def was_oom_killed(group: str) -> bool:
    """Whether the kernel killed a process of the group because it exceeded its memory limit."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError), open(os.path.join(group, name), encoding="utf-8") as file:
            if any(int(line.split()[1]) > 0 for line in file if line.startswith("oom_kill ")):
                return True
    return False


def kill(group: str) -> None:
    """Kill all processes of the group, and delete it if it is empty then."""
    with contextlib.suppress(OSError):
        if os.path.exists(os.path.join(group, "cgroup.events")):
            write(os.path.join(group, "cgroup.kill"), "1")
        else:
            _kill_each(group)
    with contextlib.suppress(OSError):
        os.rmdir(group)


def _kill_each(group: str) -> None:
    """Version 1 has no file that kills all, and new processes may begin meanwhile."""
    for _ in range(_KILL_ROUNDS):
        with open(os.path.join(group, "cgroup.procs"), encoding="utf-8") as file:
            pids = [pid for line in file if (pid := int(line)) > 0]  # 0 would be our own process group
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def own_groups(process: str = "self") -> dict[str, str]:
    """Our own groups, or those of another process, by controller; "" for that of version 2."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), open(f"/proc/{process}/cgroup", encoding="utf-8") as file:
        for line in file:
            _number, controllers, path = line.strip().split(":", 2)
            found |= dict.fromkeys(controllers.split(","), path)
    return found


def _delegates(group: str) -> bool:
    try:
        with open(os.path.join(group, "cgroup.subtree_control"), encoding="utf-8") as file:
            return set(file.read().split()) >= NEEDED
    except OSError:
        return False


def _create_delegating(path: str) -> str | None:
    try:
        os.makedirs(path, exist_ok=True)
        write(os.path.join(path, "cgroup.subtree_control"), "+memory +cpu")
    except OSError:
        return None
    return path


def _create_plain(path: str, file: str) -> bool:
    """Create a group of version 1. The system gives it its files."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        return False
    if os.access(os.path.join(path, file), os.W_OK):
        return True
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return False


def write(path: str, value: str) -> None:
    """Write to a file of a control group. Raises OSError."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(value)
