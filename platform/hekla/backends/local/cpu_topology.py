"""The CPUs of this machine: NUMA cells and cores, and which CPUs pods may have for themselves."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from hekla.domain.cpu_sets import parse_cpus
from hekla.domain.numa import MAX_CELLS

SYSTEM = Path("/sys/devices/system")
_SIBLINGS = "topology/thread_siblings_list"


@dataclass(frozen=True, slots=True)
class CpuTopology:
    """The CPUs that the console may use. `cells`: of each NUMA cell, those that pods may have for themselves.

    `reserved`: the others, at least one; no pod has them for itself. `cores`: the threads of each CPU's core.
    """

    cells: tuple[frozenset[int], ...]
    reserved: frozenset[int]
    cores: Mapping[int, frozenset[int]]

    def pick(self, free: Collection[int], count: int) -> list[int]:
        """`count` of these CPUs: whole cores first, then threads of the cores with the fewest free ones."""
        left, chosen = set(free), set[int]()
        for cpu in sorted(free):
            core = self.cores[cpu]
            if core <= left and len(core) <= count - len(chosen):
                chosen |= core
                left -= core
        rest = sorted(left, key=lambda cpu: (len(self.cores[cpu] & left), cpu))
        return sorted(chosen.union(rest[: count - len(chosen)]))


def own_cpus() -> frozenset[int]:
    """The CPUs on which this process may run; none if the system does not tell."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def read_topology(reserved: Collection[int], system: Path = SYSTEM, own: Collection[int] | None = None) -> CpuTopology:
    """The topology from the files of Linux. `reserved`: if none of them is ours, our lowest CPU is reserved.

    Cells without our CPUs are left out, and so are CPUs of the ninth cell and later: kubelets support eight. A machine
    that tells of no cells is one.
    """
    own = own_cpus() if own is None else frozenset(own)
    own_reserved = own & frozenset(reserved) or frozenset(sorted(own)[:1])
    free = own - own_reserved
    found = [_read(path) for path in _by_number(system / "node", "node*/cpulist")]
    cells = [cell & free for cell in found or [own] if cell & free][:MAX_CELLS]
    cores = {cpu: _read(system / "cpu" / f"cpu{cpu}" / _SIBLINGS) & own | {cpu} for cpu in own}
    return CpuTopology(tuple(cells), own.difference(*cells), cores)


def _by_number(folder: Path, pattern: str) -> list[Path]:
    """The files in the order of their numbers: node2 before node10."""
    return sorted(folder.glob(pattern), key=lambda path: (len(path.parent.name), path.parent.name))


def _read(path: Path) -> frozenset[int]:
    """The CPUs in a file; none if the system does not tell."""
    try:
        return parse_cpus(path.read_text())
    except (OSError, ValueError):
        return frozenset()
