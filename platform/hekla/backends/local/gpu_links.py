"""How close the GPUs of this machine are to each other, as NVIDIA's driver reports it.

The scheduler compares the numbers only with each other: GPUs with NVLink come first, then those behind fewer bridges.
"""

import contextlib
import json
from itertools import combinations

import pynvml

ANNOTATION = "hekla.io/gpu-links"
NVLINK = 7
_CLOSENESS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: 6,  # on one board
    pynvml.NVML_TOPOLOGY_SINGLE: 5,  # one PCIe switch
    pynvml.NVML_TOPOLOGY_MULTIPLE: 4,  # several PCIe switches
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: 3,
    pynvml.NVML_TOPOLOGY_NODE: 2,  # one NUMA node
    pynvml.NVML_TOPOLOGY_SYSTEM: 1,
}


class GpuLinks:
    """The links of the GPUs that were measured last. They do not change, and a large machine has two thousand."""

    def __init__(self) -> None:
        self._ids: tuple[str, ...] = ()
        self._matrix: list[list[int]] = []

    def measure(self, ids: tuple[str, ...]) -> None:
        """Measure the links of these GPUs unless they were the last, while the driver's library is in use anyway.

        `ids`: as the driver numbers them; empty for one that has failed, which has no links.
        """
        if ids == self._ids:
            return
        links = [[0] * len(ids) for _ in ids]
        for first, second in combinations(range(len(ids)), 2):
            links[first][second] = links[second][first] = _strength(first, second)
        self._ids, self._matrix = ids, links

    def annotations(self, ids: tuple[str, ...], numbers: tuple[int, ...]) -> dict[str, str]:
        """The annotation of the node with these GPUs: a matrix of those with these numbers; nothing without a link."""
        if not self._matrix or ids != self._ids:
            return {}
        rows = [[self._matrix[one][other] for other in numbers] for one in numbers]
        return {ANNOTATION: json.dumps(rows)} if any(map(any, rows)) else {}


def _strength(first: int, second: int) -> int:
    """0 if the driver does not report it."""
    with contextlib.suppress(pynvml.NVMLError):
        pair = pynvml.nvmlDeviceGetHandleByIndex(first), pynvml.nvmlDeviceGetHandleByIndex(second)
        with contextlib.suppress(pynvml.NVMLError):
            status = pynvml.nvmlDeviceGetP2PStatus(*pair, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
            if status == pynvml.NVML_P2P_STATUS_OK:
                return NVLINK
        return _CLOSENESS.get(pynvml.nvmlDeviceGetTopologyCommonAncestor(*pair), 0)
    return 0
