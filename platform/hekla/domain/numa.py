"""The NUMA cells of a node: parts whose CPUs are close to their memory, to which a kubelet pins pods."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

MAX_CELLS = 8
"""A kubelet supports eight cells."""


class TopologyPolicy(StrEnum):
    """How the CPUs of a pod must be placed on NUMA cells, as kubelets call it: Volcano's `topologyPolicy`."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


@dataclass(frozen=True, slots=True)
class NumaTopology:
    """How the kubelet of a node pins pods. `cells`: of each cell, the CPUs for pinned pods, and how many are free."""

    topology_policy: str
    cpu_policy: str
    cells: tuple[tuple[int, int], ...]

    def as_data(self) -> dict[str, Any]:
        """As rows of nodes store it."""
        cells = [{"cpus": cpus, "free": free} for cpus, free in self.cells]
        return {"topology_policy": self.topology_policy, "cpu_policy": self.cpu_policy, "cells": cells}


def pin(free: Sequence[int], cpus: int) -> tuple[int, ...]:
    """How many CPUs of each cell a kubelet pins a pod to, by the free CPUs of the cells.

    It takes the fewest cells that have enough, then the lowest. No cells have enough: the pod is pinned to none.
    """
    for size in range(1, min(len(free), MAX_CELLS) + 1):
        for chosen in combinations(range(len(free)), size):
            if sum(free[cell] for cell in chosen) >= cpus:
                return _parts(free, chosen, cpus)
    return (0,) * len(free)


def _parts(free: Sequence[int], chosen: Sequence[int], cpus: int) -> tuple[int, ...]:
    parts = [0] * len(free)
    for cell in chosen:
        parts[cell] = min(free[cell], cpus)
        cpus -= parts[cell]
    return tuple(parts)
