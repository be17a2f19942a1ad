"""Keeps the processes of pods on CPUs: by control groups of version 2 or 1, else by the affinity of the processes.

A pod cannot leave the CPUs of its control group. Its affinity it can change. Standard library only, because the shim
uses it.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict

from hekla.backends.local import cgroups
from hekla.domain.cpu_sets import parse_cpus

CPUS, MEMS = "cpuset.cpus", "cpuset.mems"
_ROUNDS = 3


class CpuOrder(TypedDict):
    """The CPUs of a pod. `own`: those that it has alone, as Linux writes them; empty: those in the file `pool`, which
    changes while the pod runs. `group`: the control group that keeps it there; empty: there is none.
    """

    own: str
    pool: str
    group: str


class Parent(NamedTuple):
    """The parent of the pods' control groups that keep them on CPUs. `files`: with their contents, of each group."""

    path: str
    files: Mapping[str, str]


def create_parent(
    name: str, groups: cgroups.Parents, root: str = cgroups.ROOT, own: Mapping[str, str] | None = None
) -> Parent | None:
    """Create the parent; None if the system does not allow it. `groups`: those that limit memory and CPU.

    With version 2 it is the same group. `name`, `own`: as for those groups.
    """
    try:
        if both := groups.get(f"{cgroups.MEMORY} {cgroups.CPU}"):
            cgroups.write(f"{both}/cgroup.subtree_control", "+cpuset")
            return Parent(both, {})
        ours = os.path.normpath(f"{root}/cpuset/{(cgroups.own_groups() if own is None else own)['cpuset']}")
        path, mems = f"{ours}/{name}", _read(f"{ours}/{MEMS}")
        os.makedirs(path, exist_ok=True)
        cgroups.write(f"{path}/{MEMS}", mems)
        cgroups.write(f"{path}/{CPUS}", _read(f"{ours}/{CPUS}"))
        return Parent(path, {MEMS: mems})
    except (OSError, KeyError):
        return None


def wanted(order: CpuOrder) -> str:
    """The CPUs that the pod should have now. Raises OSError."""
    return order["own"] or _read(order["pool"])


def keep_group(group: str, cpus: str) -> None:
    """Keep the processes of a control group on these CPUs. Raises OSError."""
    cgroups.write(f"{group}/{CPUS}", cpus)


def keep_processes(pids: Iterable[int], cpus: str) -> None:
    """Set the affinity of all threads of these processes. Those that have ended are left out. Raises OSError."""
    numbers = parse_cpus(cpus)
    for pid in pids:
        known: set[str] = set()
        for _ in range(_ROUNDS):  # new threads may begin meanwhile
            threads = _threads(pid) - known
            for thread in threads:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), numbers)
            known |= threads


def group_of(pid: int) -> str:
    """The control group that keeps a process on CPUs; empty if there is none, or the process has ended."""
    own = cgroups.own_groups(str(pid))
    places = [f"{cgroups.ROOT}/cpuset{own['cpuset']}"] if "cpuset" in own else []
    places += [f"{cgroups.ROOT}{own['']}"] if "" in own else []
    return next((place for place in places if os.path.exists(f"{place}/{CPUS}")), "")


def _threads(pid: int) -> set[str]:
    try:
        return set(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return set()


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
