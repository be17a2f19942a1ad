"""The nodes of the simulated cluster, and which of their GPUs are free. A simple rule places gangs: the first fit."""

from collections.abc import Sequence

from hekla.apps.clusters.models import NodeFacts
from hekla.bench.operations.workload import GPU, GPUS_PER_NODE

_MODELS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3")


class Machines:
    """The free GPUs of each node."""

    def __init__(self, count: int) -> None:
        self._free = [GPUS_PER_NODE] * count
        self._next = 0

    def facts(self, *, down: Sequence[int] = ()) -> list[NodeFacts]:
        """The nodes as a backend reports them. `down`: the places of those that are not ready."""
        lost = set(down)
        return [self._facts(place, is_ready=place not in lost) for place in range(len(self._free))]

    def _facts(self, place: int, *, is_ready: bool) -> NodeFacts:
        allocatable = {"cpu": "128", "memory": "1Ti", GPU: str(GPUS_PER_NODE), "pods": "250"}
        model = _MODELS[place % len(_MODELS)]
        labels = {"rack": f"r{place // 20}", f"{GPU}.product": model}
        return NodeFacts(f"node-{place}", allocatable, labels, is_ready=is_ready)

    def place(self, pods: int, gpus: int) -> list[int] | None:
        """Take room for a gang; None if there is not enough."""
        found, count = list[int](), len(self._free)
        for step in range(count):
            place = (self._next + step) % count
            fitting = min(self._free[place] // gpus, pods - len(found))
            found += [place] * fitting
            if len(found) == pods:
                self._next = place
                for one in found:
                    self._free[one] -= gpus
                return found
        return None

    def release(self, place: int, gpus: int) -> None:
        """Give back what a pod held."""
        self._free[place] += gpus
