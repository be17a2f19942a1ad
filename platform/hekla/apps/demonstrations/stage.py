"""What the simulated cluster of a demonstration is: nodes, queues, a policy, and how its nodes are drawn.

Clusters of demonstrations are small, so that each case fits exactly, and separate, so that other work does not disturb
them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Words = str | Promise
GPU = "nvidia.com/gpu"
SPEED = 10
"""Simulated seconds per real second."""
ALL_DAY = "00:00-00:00"
"""The hours of a zone that is open; `Stage.policy` can end them."""
_USUAL_AMOUNTS = {"cpu": "32", "memory": "128Gi"}
_GPU_SQUARES = _("A square is a GPU. Its number is that of the job that holds it.")
_FIRST_TIER = ("priority", "gang", "conformance")


@dataclass(frozen=True, slots=True)
class Amount:
    """`count` squares. Each stands for `each` of a resource of the node. `start`: the number of earlier squares."""

    count: int
    resource: str = GPU
    each: str = "1"
    name: Words = ""
    start: int = 0


@dataclass(frozen=True, slots=True)
class LinkedCards:
    """Cards of a node between which links are fast, by their numbers; a square for each."""

    name: Words
    cards: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.cards)


@dataclass(frozen=True, slots=True)
class CardMemory:
    """The memory of one card of a node; each of the squares stands for this many MiB."""

    name: Words
    card: int
    count: int
    mebibytes: int


@dataclass(frozen=True, slots=True)
class CellCpus:
    """A NUMA cell of a node; a square for each of its CPUs."""

    name: Words
    cell: int
    count: int


Part = Amount | LinkedCards | CardMemory | CellCpus


@dataclass(frozen=True, slots=True)
class StageNode:
    """A node. `parts`: how it is drawn. `area`: the rack or zone in which it is drawn; `note`: a few words beside it.

    `amounts`: in addition to usual ones of CPU and memory. `more`: other fields of a simulated node.
    """

    parts: tuple[Part, ...]
    amounts: Mapping[str, str] = field(default_factory=dict)
    area: Words = ""
    note: Words = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[int, ...]:
        """The CPUs of its NUMA cells."""
        return tuple(part.count for part in self.parts if isinstance(part, CellCpus))

    def config(self, name: str) -> dict[str, Any]:
        """Its entry in the configuration of the simulated backend."""
        return {"name": name, "allocatable": {**_USUAL_AMOUNTS, **self.amounts}, **self.more}


def gpu_nodes(*gpus: int, area: Words = "", **more: Any) -> tuple[StageNode, ...]:  # noqa: ANN401
    """Nodes with so many GPUs each."""
    return tuple(StageNode((Amount(count),), {GPU: str(count)}, area=area, more=more) for count in gpus)


@dataclass(frozen=True, slots=True)
class Stage:
    """A simulated cluster with its queues. `queue_values`: fields of a queue, by its name.

    `legend`: what a square is. `plugins`: of its policy, in addition to `usual` ones, with their arguments and
    flags. `instead`: the plugin that takes the place of one that is left out. `topology`: the node labels that say
    which nodes are close.
    """

    name: str
    nodes: tuple[StageNode, ...]
    queues: tuple[str, ...]
    legend: Words = _GPU_SQUARES
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    usual: tuple[str, ...] = ("drf", "predicates", "proportion", "nodeorder")
    actions: tuple[str, ...] = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
    topology: tuple[str, ...] = ()
    queue_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the simulated backend. Pods take one real second to prepare, and one to stop."""
        return {
            "nodes": [node.config(name) for name, node in self.named_nodes().items()],
            "seed": 1,
            "speed": SPEED,
            "prepare_seconds": {"min": SPEED, "max": SPEED},
            "stop_seconds": SPEED,
            **({"topology_labels": list(self.topology)} if self.topology else {}),
        }

    def named_nodes(self) -> dict[str, StageNode]:
        """The nodes by name."""
        return {f"node-{number}": node for number, node in enumerate(self.nodes, start=1)}

    @property
    def has_hours(self) -> bool:
        """Whether nodes are lent during some hours only."""
        return "tdm" in self.plugins

    def policy(self, without: str = "", *, closed_at: datetime | None = None) -> str:
        """The policy, without this action or plugin. `closed_at`: when the hours of lent nodes have ended."""
        tiers = [_FIRST_TIER, (*self.usual, *self.plugins)]
        lines = [f'actions: "{", ".join(name for name in self.actions if name != without)}"', "tiers:"]
        for tier in tiers:
            names = (self.instead.get(name, "") if name == without else name for name in tier)
            lines += ["- plugins:", *(line for name in names if name for line in self._plugin(name, closed_at))]
        return "\n".join(lines) + "\n"

    def _plugin(self, name: str, closed_at: datetime | None) -> list[str]:
        arguments = dict(self.plugins.get(name, {}))
        if closed_at is not None:
            ended = f"{closed_at - timedelta(hours=2):%H:%M}-{closed_at:%H:%M}"
            arguments = {key: ended if value == ALL_DAY else value for key, value in arguments.items()}
        flags = [key for key in arguments if key.startswith("enable")]  # Volcano has them beside the arguments
        lines = [f"    {key}: {json.dumps(arguments.pop(key))}" for key in flags]
        return [f"  - name: {name}", *lines, *([f"    arguments: {json.dumps(arguments)}"] if arguments else [])]
