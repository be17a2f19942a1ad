"""The NUMA cells of a node: parts whose CPUs are close to their memory, to which a kubelet pins pods."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_CELLS, MAX_CPUS = 8, 4096
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
