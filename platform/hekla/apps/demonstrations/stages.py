"""The simulated clusters on which demonstrations play: machines, queues and a policy that evicts.

They are small, so that a case fits exactly, and apart from all else, so that other work does not disturb it.
"""

from dataclasses import dataclass
from typing import Any

GPU = "nvidia.com/gpu"
SPEED = 10
"""Simulated seconds in a real one."""
POLICY = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: task-topology
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster by its name, the GPUs of each of its nodes, and the names of its queues."""

    name: str
    gpus: tuple[int, ...]
    queues: tuple[str, ...]

    @property
    def config(self) -> dict[str, Any]:
        """What the simulated backend is told. Every pod is ready after a second and gone a second after a stop."""
        return {
            "nodes": [_node(number, gpus) for number, gpus in enumerate(self.gpus, start=1)],
            "seed": 1,
            "speed": SPEED,
            "prepare_seconds": {"min": SPEED, "max": SPEED},
            "stop_seconds": SPEED,
        }


def _node(number: int, gpus: int) -> dict[str, Any]:
    return {"name": f"node-{number}", "allocatable": {"cpu": "32", "memory": "128Gi", GPU: str(gpus)}}


GANGS = Stage("demo-gangs", (2, 2), ("demo-gangs",))
TOGETHER = Stage("demo-together", (6, 6, 6), ("demo-together",))
ELASTIC = Stage("demo-elastic", (5, 5), ("demo-elastic", "demo-elastic-2"))
STAGES = (GANGS, TOGETHER, ELASTIC)
