"""Memory and CPU limits by cgroup v2, if the system allows it: a control group for each pod.

All functions are idempotent. Standard library only, because the shim uses it.
"""

import contextlib
import os

ROOT = "/sys/fs/cgroup"
NEEDED = frozenset({"memory", "cpu"})
CPU_PERIOD_MICROSECONDS = 100_000


def create_parent(name: str, root: str = ROOT, own: str | None = None) -> str | None:
    """Create the parent of the pods' control groups. Returns its path, or None if the system does not allow it.

    It is not inside our own group, because a group with processes cannot delegate limits.
    """
    parent = os.path.normpath(f"{root}/{_own_group() if own is None else own}")
    while parent.startswith(root):
        if _delegates(parent) and (created := _create_parent_at(os.path.join(parent, name))):
            return created
        parent = os.path.dirname(parent)
    return None


def limit_files(cpu: float, memory: float) -> dict[str, str]:
    """The names and contents of a pod's group files. `cpu`: in millicores; `memory`: in bytes; 0 for no limit."""
    limits = {"memory.oom.group": "1"}
    if memory:
        limits |= {"memory.max": str(int(memory)), "memory.swap.max": "0"}
    if cpu:
        limits["cpu.max"] = f"{int(cpu * CPU_PERIOD_MICROSECONDS / 1000)} {CPU_PERIOD_MICROSECONDS}"
    return limits


def create(group: str, limits: dict[str, str]) -> None:
    """Create the group of one pod, with its limits. Raises OSError."""
    os.makedirs(group, exist_ok=True)
    for name, value in limits.items():
        if name == "memory.swap.max" and not os.path.exists(os.path.join(group, name)):
            continue  # kernels without swap lack this file
        _write(os.path.join(group, name), value)


def enter(group: str) -> None:
    """Move this process, and all processes that it starts later, into the group. Raises OSError."""
    _write(os.path.join(group, "cgroup.procs"), "0")


def was_oom_killed(group: str) -> bool:
    """Whether the kernel killed a process of the group because it exceeded its memory limit."""
    with contextlib.suppress(OSError), open(os.path.join(group, "memory.events"), encoding="utf-8") as file:
        return any(int(line.split()[1]) > 0 for line in file if line.startswith("oom_kill "))
    return False


def kill(group: str) -> None:
    """Kill all processes of the group, and delete it if it is empty then."""
    with contextlib.suppress(OSError):
        _write(os.path.join(group, "cgroup.kill"), "1")
    with contextlib.suppress(OSError):
        os.rmdir(group)


def _own_group() -> str:
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as file:
        return next((line[3:].strip() for line in file if line.startswith("0::")), "/")
    return "/"


def _delegates(group: str) -> bool:
    try:
        with open(os.path.join(group, "cgroup.subtree_control"), encoding="utf-8") as file:
            return set(file.read().split()) >= NEEDED
    except OSError:
        return False


def _create_parent_at(path: str) -> str | None:
    try:
        os.makedirs(path, exist_ok=True)
        _write(os.path.join(path, "cgroup.subtree_control"), "+memory +cpu")
    except OSError:
        return None
    return path


def _write(path: str, value: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(value)
