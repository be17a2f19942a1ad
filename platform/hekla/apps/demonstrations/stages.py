"""The simulated clusters of demonstrations: nodes, queues and a policy that evicts.

They are small, so that each case fits exactly, and separate, so that other work does not disturb them.
"""

from dataclasses import dataclass
from typing import Any

GPU = "nvidia.com/gpu"
SPEED = 10
"""Simulated seconds per real second."""
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
    """A simulated cluster: its name, the GPUs of each node, and the names of its queues."""

    name: str
    gpus: tuple[int, ...]
    queues: tuple[str, ...]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the simulated backend. Pods take one real second to prepare, and one to stop."""
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
