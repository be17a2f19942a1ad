"""The simulated clusters of demonstrations. Some have different nodes in turn: a running cluster costs something."""

import json
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.stage import (
    ALL_DAY,
    GPU,
    Amount,
    CardMemory,
    CellCpus,
    LinkedCards,
    Stage,
    StageNode,
    gpu_nodes,
)
from hekla.domain.cards import NUMBER

RACK, ZONE = "rack", "volcano.sh/revocable-zone"
IMAGES, SPEECH = "images", "speech"
"""Data sets of the demonstration of data locality."""
_CACHED = "hekla.io/cached-datasets"
_CARD_GIB, _SQUARE_MIB = 16, 2048
_FAST, _SLOW = 12, 1
_NO_EVICTIONS = ("enqueue", "allocate", "backfill")
_WITHOUT_SHARES = ("drf", "predicates", "nodeorder")
_CPU_SQUARES = _("A square is a CPU. Its number is that of the job that holds it.")


def _rack(name: str, *gpus: int) -> tuple[StageNode, ...]:
    return gpu_nodes(*gpus, area=name, labels={RACK: name})


def _cached(*names: str) -> StageNode:
    text = ",".join(names)
    note = format_lazy(_("caches {names}"), names=text) if names else ""
    return StageNode((Amount(2),), {GPU: "2"}, note=note, more={"annotations": {_CACHED: text}} if names else {})


def _cells(*cpus: int) -> StageNode:
    parts = tuple(CellCpus(format_lazy(_("cell {number}"), number=at), at, count) for at, count in enumerate(cpus))
    numa = {"topology_policy": "best-effort", "cells": list(cpus)}
    return StageNode(parts, {"cpu": str(sum(cpus))}, more={"numa": numa})


def _linked(*groups: tuple[int, ...]) -> StageNode:
    """A node whose cards have fast links within groups, and slow ones between them."""
    parts = tuple(LinkedCards(format_lazy(_("fast link {number}"), number=at), one) for at, one in enumerate(groups, 1))
    of = {card: at for at, group in enumerate(groups) for card in group}
    matrix = [[_FAST if of[a] == of[b] else _SLOW for b in sorted(of)] for a in sorted(of)]
    cards: list[dict[str, Any]] = [{"resource": NUMBER, "model": "A100", "count": len(of)}]
    return StageNode(parts, more={"cards": cards, "annotations": {"hekla.io/gpu-links": json.dumps(matrix)}})


def _shared_cards(count: int) -> StageNode:
    squares = _CARD_GIB * 1024 // _SQUARE_MIB
    names = (format_lazy(_("card {number}"), number=card) for card in range(count))
    parts = tuple(CardMemory(name, card, squares, _SQUARE_MIB) for card, name in enumerate(names))
    cards = [{"resource": NUMBER, "model": "T4", "memory": f"{_CARD_GIB}Gi", "count": count}]
    return StageNode(parts, more={"cards": cards})


GANGS = Stage("demo-gangs", gpu_nodes(2, 2), ("demo-gangs",))
TOGETHER = Stage("demo-together", gpu_nodes(6, 6, 6), ("demo-together",), plugins={"task-topology": {}})
ELASTIC = Stage("demo-elastic", gpu_nodes(5, 5), ("demo-elastic", "demo-elastic-2"))
PACKED = Stage(
    "demo-packed",
    gpu_nodes(4, 4, 4),
    ("demo-packed",),
    plugins={"binpack": {"binpack.weight": 10, "binpack.resources": GPU, f"binpack.resources.{GPU}": 10}},
)
SPREAD = Stage("demo-nodes", gpu_nodes(4, 4, 4, 4), ("demo-nodes",))
RACKS = Stage(
    "demo-racks",
    (*_rack("rack-1", 4, 4), *_rack("rack-2", 4, 4)),
    ("demo-racks",),
    plugins={"network-topology-aware": {}},
    topology=(RACK,),
)
DATA = Stage(
    "demo-nodes",
    (_cached(SPEECH), _cached(), _cached(IMAGES), _cached()),
    ("demo-nodes",),
    plugins={"data-locality": {}},
)
HOURS = Stage(
    "demo-nodes",
    (
        *gpu_nodes(4, area=_("own nodes")),
        *gpu_nodes(4, area=_("zone “night”"), labels={ZONE: "night"}),
    ),
    ("demo-nodes",),
    plugins={"tdm": {"tdm.revocable-zone.night": ALL_DAY, "tdm.evict.period": "1s"}},
    actions=(*_NO_EVICTIONS, "shuffle"),
)
COLOCATION = Stage(
    "demo-nodes",
    (
        StageNode(
            (Amount(8, "cpu", name=_("size")), Amount(4, "cpu", name=_("unused, lent"), start=8)),
            {"cpu": "8"},
            more={"annotations": {"volcano.sh/oversubscription-cpu": "4"}},
        ),
    ),
    ("demo-nodes",),
    legend=_CPU_SQUARES,
    plugins={"colocation": {}},
    usual=_WITHOUT_SHARES,
    actions=_NO_EVICTIONS,
)
NUMA = Stage(
    "demo-cards", (_cells(4, 4, 4, 4), _cells(8, 8)), ("demo-cards",), legend=_CPU_SQUARES, plugins={"numa-aware": {}}
)
LINKS = Stage(
    "demo-cards",
    (_linked((0, 2), (1, 3)),),
    ("demo-cards",),
    plugins={"deviceshare": {"deviceshare.GPUNumberEnable": True}},
)
SHARING = Stage(
    "demo-cards",
    (_shared_cards(2),),
    ("demo-cards",),
    legend=_("A square is 2 GiB of the memory of a card. Its number is that of the job that holds it."),
    plugins={"deviceshare": {"deviceshare.GPUSharingEnable": True}},
    usual=_WITHOUT_SHARES,
    actions=_NO_EVICTIONS,
)
SHARES = Stage(
    "demo-order",
    (
        StageNode(
            (Amount(9, "cpu", name=_("CPUs")), Amount(18, "memory", "1Gi", _("GiB of memory"))),
            {"cpu": "9", "memory": "18Gi"},
        ),
    ),
    ("demo-order",),
    legend=_("A square is a CPU, or 1 GiB of memory. Its number is that of the job that holds it."),
    actions=_NO_EVICTIONS,
)
HIERARCHY = Stage(
    "demo-order",
    gpu_nodes(3, 3),
    ("demo-vision-lab", "demo-speech-lab", "demo-production"),
    plugins={"drf": {"enableHierarchy": True}},
    instead={"drf": "proportion"},
    usual=("predicates", "nodeorder"),
    actions=_NO_EVICTIONS,
    queue_values={
        "demo-vision-lab": {"hierarchy": "root/research/vision", "hierarchy_weights": "1/1/1"},
        "demo-speech-lab": {"hierarchy": "root/research/speech", "hierarchy_weights": "1/1/1"},
        "demo-production": {"hierarchy": "root/production", "hierarchy_weights": "1/2"},
    },
)
DEADLINE = Stage("demo-order", gpu_nodes(4), ("demo-order",), plugins={"sla": {}}, actions=_NO_EVICTIONS)
RESERVATION = Stage(
    "demo-order",
    gpu_nodes(2),
    ("demo-order",),
    plugins={"reservation": {"after": "1s"}},
    usual=_WITHOUT_SHARES,
    actions=_NO_EVICTIONS,
)
STAGES = (GANGS, TOGETHER, ELASTIC, PACKED, RACKS, SPREAD, NUMA, SHARES)
"""One of each cluster."""
