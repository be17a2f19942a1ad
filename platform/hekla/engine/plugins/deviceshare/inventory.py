"""The cards of a node, from its allocatable resources and its annotations (`volcano-spec` §5.7)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import Vector
from hekla.engine.model import NodeSpec
from hekla.engine.plugins.deviceshare.mig import AllowedGeometries, MigGeometry, geometries_for
from hekla.engine.plugins.deviceshare.requests import Mode

_MEMORY, _NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
UNHEALTHY, REGISTER = "volcano.sh/gpu-unhealthy-ids", "volcano.sh/node-vgpu-register"
LINKS = "hekla.io/gpu-links"
_UNIT = 1000
MAX_CARDS = 64


@dataclass(frozen=True, slots=True)
class Card:
    """One card: its memory, how many pods may share it, and its MIG geometries.

    `is_usable`: whether it may be allocated; a healthy MIG card without known geometries may not.
    """

    index: int
    memory: float
    sharers: float = np.inf
    uuid: str = ""
    kind: str = ""
    is_usable: bool = True
    geometries: tuple[MigGeometry, ...] = ()
    is_healthy: bool = True


def cards_of(node: NodeSpec, mode: Mode, geometries: Sequence[AllowedGeometries] = ()) -> tuple[Card, ...]:
    """The cards of a node; none if its data is invalid or names more than `MAX_CARDS`."""
    try:
        found = _registered(node, geometries) if mode is Mode.VIRTUAL else _equal_ones(node)
    except (ValueError, IndexError):
        return ()
    return found if len(found) <= MAX_CARDS else ()


def _equal_ones(node: NodeSpec) -> tuple[Card, ...]:
    count = int(node.allocatable.amount(_NUMBER) // _UNIT)
    unhealthy = {part.strip() for part in node.annotations.get(UNHEALTHY, "").split(",")}
    memory = node.allocatable.amount(_MEMORY) / _UNIT // count if count else 0.0
    health = [str(i) not in unhealthy for i in range(min(count, MAX_CARDS + 1))]
    return tuple(Card(i, memory, is_usable=is_healthy, is_healthy=is_healthy) for i, is_healthy in enumerate(health))


def _registered(node: NodeSpec, geometries: Sequence[AllowedGeometries]) -> tuple[Card, ...]:
    """Cards as `uuid,count,memory,type,health,mode`, separated by colons.

    A MIG card (mode `mig`) without known geometries is not allocated.
    """
    texts = [text for text in node.annotations.get(REGISTER, "").split(":") if text.strip()]
    return tuple(_card(index, text.split(","), geometries) for index, text in enumerate(texts))


def _card(index: int, fields: list[str], allowed: Sequence[AllowedGeometries]) -> Card:
    kind, is_mig = fields[3].strip(), "mig" in (field.strip() for field in fields[5:])
    geometries = geometries_for(kind, allowed) if is_mig else ()
    is_healthy = fields[4].strip().lower() == "true"
    is_usable = is_healthy and bool(geometries) == is_mig
    return Card(index, float(fields[2]), float(fields[1]), fields[0].strip(), kind, is_usable, geometries, is_healthy)


def links_of(node: NodeSpec, cards: int, note: Callable[[str], Vector]) -> Vector | None:
    """The link strength of each pair of cards; None if the node has no valid matrix for these cards."""
    text = node.annotations.get(LINKS, "")
    matrix = note(text) if text else None
    return matrix if matrix is not None and matrix.shape == (cards, cards) else None


def parse_links(text: str) -> Vector:
    """A symmetric matrix from JSON; an empty one if invalid. A card's link to itself does not count."""
    try:
        matrix = np.atleast_1d(np.array(json.loads(text), dtype=float))
    except (ValueError, TypeError):
        return np.zeros((0, 0))
    if matrix.shape != (len(matrix),) * 2 or not np.isfinite(matrix).all():
        return np.zeros((0, 0))
    both: Vector = (matrix + matrix.T) / 2
    np.fill_diagonal(both, 0.0)
    return both
