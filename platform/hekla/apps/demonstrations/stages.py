"""The simulated clusters of demonstrations: nodes, queues and a policy.

They are small, so that each case fits exactly, and separate, so that other work does not disturb them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

GPU = "nvidia.com/gpu"
SPEED = 10
"""Simulated seconds per real second."""
RACK = "rack"
"""The node label that says which nodes are close."""
_ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
_FIRST_TIER = ("priority", "gang", "conformance")
_SECOND_TIER = ("drf", "predicates", "proportion", "nodeorder")


@dataclass(frozen=True, slots=True)
class Stage:
    """A simulated cluster: its name, the GPUs of each node, the names of its queues, and the rack of each node, if it
    has racks. `plugins`: of its policy, in addition to the usual ones, with their arguments.
    """

    name: str
    gpus: tuple[int, ...]
    queues: tuple[str, ...]
    racks: tuple[str, ...] = ()
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the simulated backend. Pods take one real second to prepare, and one to stop."""
        return {
            "nodes": [self._node(number) for number in range(len(self.gpus))],
            "seed": 1,
            "speed": SPEED,
            "prepare_seconds": {"min": SPEED, "max": SPEED},
            "stop_seconds": SPEED,
            **({"topology_labels": [RACK]} if self.racks else {}),
        }

    def policy(self, without: str = "") -> str:
        """The policy, without this action or plugin."""
        tiers = [_FIRST_TIER, (*_SECOND_TIER, *self.plugins)]
        lines = [f'actions: "{", ".join(_all_but(without, _ACTIONS))}"', "tiers:"]
        for tier in tiers:
            lines += ["- plugins:", *(line for name in _all_but(without, tier) for line in self._plugin(name))]
        return "\n".join(lines) + "\n"

    def _plugin(self, name: str) -> list[str]:
        arguments = self.plugins.get(name)
        return [f"  - name: {name}", *([f"    arguments: {json.dumps(arguments)}"] if arguments else [])]

    def nodes(self) -> list[tuple[str, int]]:
        """The nodes with their GPUs."""
        return [(node_name(number), gpus) for number, gpus in enumerate(self.gpus)]

    def rack_of(self, node: str) -> str:
        """The rack of a node; empty without racks, and for unknown nodes."""
        return next((rack for number, rack in enumerate(self.racks) if node_name(number) == node), "")

    def _node(self, number: int) -> dict[str, Any]:
        labels = {"labels": {RACK: self.racks[number]}} if self.racks else {}
        amounts = {"cpu": "32", "memory": "128Gi", GPU: str(self.gpus[number])}
        return {"name": node_name(number), "allocatable": amounts, **labels}


def node_name(number: int) -> str:
    """The name of a node of a stage, counted from 0."""
    return f"node-{number + 1}"


def _all_but(without: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name != without]


GANGS = Stage("demo-gangs", (2, 2), ("demo-gangs",))
TOGETHER = Stage("demo-together", (6, 6, 6), ("demo-together",), plugins={"task-topology": {}})
ELASTIC = Stage("demo-elastic", (5, 5), ("demo-elastic", "demo-elastic-2"))
PACKED = Stage(
    "demo-packed",
    (4, 4, 4),
    ("demo-packed",),
    plugins={"binpack": {"binpack.weight": 10, "binpack.resources": GPU, f"binpack.resources.{GPU}": 10}},
)
RACKS = Stage(
    "demo-racks",
    (4, 4, 4, 4),
    ("demo-racks",),
    racks=("rack-1", "rack-1", "rack-2", "rack-2"),
    plugins={"network-topology-aware": {}},
)
STAGES = (GANGS, TOGETHER, ELASTIC, PACKED, RACKS)
