"""MIG: the hardware divides a card in one of a few geometries at a time, each with instances of fixed sizes.

Volcano reads the geometries of card models from a ConfigMap. The engine reads nothing: the same list is the plugin's
argument `deviceshare.knownMigGeometries`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hekla.engine.policy import Argument

MAX_INSTANCES = 64


@dataclass(frozen=True, slots=True)
class MigGeometry:
    """One way to divide a card: the memory of each instance, by its position."""

    name: str
    instances: tuple[float, ...]


class MigInstance(NamedTuple):
    """An instance of a card."""

    geometry: str
    position: int


@dataclass(frozen=True, slots=True)
class AllowedGeometries:
    """The geometries, in order, for cards whose type contains one of these words."""

    models: tuple[str, ...]
    geometries: tuple[MigGeometry, ...]


HeldInstances = frozenset[MigInstance]
NONE_HELD: HeldInstances = frozenset()
InstanceMemory = tuple[MigInstance, float]
"""An instance and its memory."""


def allowed_geometries(written: Argument | None) -> tuple[AllowedGeometries, ...]:
    """The geometries in the argument; invalid entries are ignored."""
    return tuple(
        AllowedGeometries(tuple(map(str, _listed(one.get("models")))), tuple(_geometries(one.get("allowedGeometries"))))
        for one in _mappings(written)
    )


def _geometries(written: Argument | None) -> Iterator[MigGeometry]:
    for group in _mappings(written):
        instances = [memory for one in _mappings(group.get("geometries")) for memory in _instances(one)]
        if 0 < len(instances) <= MAX_INSTANCES and group.get("group"):
            yield MigGeometry(str(group["group"]), tuple(instances))


def _instances(one: Mapping[str, Argument]) -> list[float]:
    memory, count = one.get("memory"), one.get("count")
    if not isinstance(memory, int | float) or not isinstance(count, int):
        return []
    return [float(memory)] * min(count, MAX_INSTANCES + 1)


def _listed(written: Argument | None) -> Sequence[Argument]:
    return written if isinstance(written, Sequence) and not isinstance(written, str) else ()


def _mappings(written: Argument | None) -> Iterator[Mapping[str, Argument]]:
    return (one for one in _listed(written) if isinstance(one, Mapping))


def geometries_for(kind: str, geometries: Sequence[AllowedGeometries]) -> tuple[MigGeometry, ...]:
    """The geometries for a card of this type; empty if none are known."""
    return next((one.geometries for one in geometries if any(model in kind for model in one.models)), ())


def pick_instance(geometries: Sequence[MigGeometry], held: HeldInstances, need: float) -> InstanceMemory:
    """The smallest free instance that is large enough. A card with a held instance keeps its geometry.

    Raises ValueError if there is none; `largest_free` tells beforehand.
    """
    for geometry in _possible(geometries, held):
        free = [
            (memory, at)
            for at, memory in enumerate(geometry.instances)
            if memory >= need and (geometry.name, at) not in held
        ]
        if free:
            memory, at = min(free)
            return MigInstance(geometry.name, at), memory
    raise ValueError("No free piece is as large.")


def largest_free(geometries: Sequence[MigGeometry], held: HeldInstances) -> float:
    """The memory of the largest free instance; -1 if there is none."""
    free = (
        memory
        for geometry in _possible(geometries, held)
        for at, memory in enumerate(geometry.instances)
        if (geometry.name, at) not in held
    )
    return max(free, default=-1.0)


def _possible(geometries: Sequence[MigGeometry], held: HeldInstances) -> list[MigGeometry]:
    names = {piece.geometry for piece in held}
    return [geometry for geometry in geometries if not names or geometry.name in names]
