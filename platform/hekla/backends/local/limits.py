"""Limits of memory and CPU by cgroup v2, where the system lets us: a control group for each pod.

Every function here may be called again. Standard library only: the shim uses it.
"""

import contextlib
import os

ROOT = "/sys/fs/cgroup"
NEEDED = frozenset({"memory", "cpu"})
CPU_PERIOD_MICROSECONDS = 100_000


def group_for_pods(name: str, root: str = ROOT, own: str | None = None) -> str | None:
    """A control group, made now, that can hold one with limits for each pod; None where the system has none for us.

    It lies beside or above our own group: one that has processes cannot hand limits down.
    """
    place = os.path.normpath(f"{root}/{_own_group() if own is None else own}")
    while place.startswith(root):
        if _holds(place) and (made := _make_group(os.path.join(place, name))):
            return made
        place = os.path.dirname(place)
    return None


def limits_of(cpu: float, memory: float) -> dict[str, str]:
    """The files of a pod's group and what is in them, for thousandths of a core and bytes; 0 is no limit."""
    limits = {"memory.oom.group": "1"}
    if memory:
        limits |= {"memory.max": str(int(memory)), "memory.swap.max": "0"}
    if cpu:
        limits["cpu.max"] = f"{int(cpu * CPU_PERIOD_MICROSECONDS / 1000)} {CPU_PERIOD_MICROSECONDS}"
    return limits


def make(group: str, limits: dict[str, str]) -> None:
    """The group of one pod. Raises OSError."""
    os.makedirs(group, exist_ok=True)
    for name, value in limits.items():
        if name == "memory.swap.max" and not os.path.exists(os.path.join(group, name)):
            continue  # a kernel without swap has no such file
        _write(os.path.join(group, name), value)


def enter(group: str) -> None:
    """This process, and all that it starts from now on, belong to the group. Raises OSError."""
    _write(os.path.join(group, "cgroup.procs"), "0")


def ran_out_of_memory(group: str) -> bool:
    """Whether the kernel ended something in the group because it took more memory than it may."""
    with contextlib.suppress(OSError), open(os.path.join(group, "memory.events"), encoding="utf-8") as file:
        return any(int(line.split()[1]) > 0 for line in file if line.startswith("oom_kill "))
    return False


def end(group: str) -> None:
    """Kill all that is in the group, and take it away if it is empty by now."""
    with contextlib.suppress(OSError):
        _write(os.path.join(group, "cgroup.kill"), "1")
    with contextlib.suppress(OSError):
        os.rmdir(group)


def _own_group() -> str:
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as file:
        return next((line[3:].strip() for line in file if line.startswith("0::")), "/")
    return "/"


def _holds(place: str) -> bool:
    try:
        with open(os.path.join(place, "cgroup.subtree_control"), encoding="utf-8") as file:
            return set(file.read().split()) >= NEEDED
    except OSError:
        return False


def _make_group(path: str) -> str | None:
    try:
        os.makedirs(path, exist_ok=True)
        _write(os.path.join(path, "cgroup.subtree_control"), "+memory +cpu")
    except OSError:
        return None
    return path


def _write(path: str, value: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(value)
