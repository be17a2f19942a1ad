"""Cards that the hardware cuts up (MIG): in one of a few ways at a time, each of them into pieces of fixed sizes.

Volcano reads from a ConfigMap how the models of cards may be cut. The engine reads nothing: the same list stands among
the plugin's arguments, as `deviceshare.knownMigGeometries`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hekla.engine.policy import Argument

MAX_PIECES = 64


@dataclass(frozen=True, slots=True)
class Cut:
    """One way to cut a card: the memory of each piece, by its position."""

    name: str
    pieces: tuple[float, ...]


class Piece(NamedTuple):
    """A piece of a card."""

    cut: str
    position: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """In which ways, in their order, cards may be cut whose type has one of these words in it."""

    models: tuple[str, ...]
    cuts: tuple[Cut, ...]


Held = frozenset[Piece]
NONE_HELD: Held = frozenset()
Given = tuple[Piece, float]
"""A piece and its memory."""


def geometries_of(written: Argument | None) -> tuple[Geometry, ...]:
    """What the argument says; what makes no sense of it does not count."""
    return tuple(
        Geometry(tuple(map(str, _listed(one.get("models")))), tuple(_cuts(one.get("allowedGeometries"))))
        for one in _mappings(written)
    )


def _cuts(written: Argument | None) -> Iterator[Cut]:
    for group in _mappings(written):
        pieces = [memory for one in _mappings(group.get("geometries")) for memory in _pieces(one)]
        if 0 < len(pieces) <= MAX_PIECES and group.get("group"):
            yield Cut(str(group["group"]), tuple(pieces))


def _pieces(one: Mapping[str, Argument]) -> list[float]:
    memory, count = one.get("memory"), one.get("count")
    if not isinstance(memory, int | float) or not isinstance(count, int):
        return []
    return [float(memory)] * min(count, MAX_PIECES + 1)


def _listed(written: Argument | None) -> Sequence[Argument]:
    return written if isinstance(written, Sequence) and not isinstance(written, str) else ()


def _mappings(written: Argument | None) -> Iterator[Mapping[str, Argument]]:
    return (one for one in _listed(written) if isinstance(one, Mapping))


def cuts_of(kind: str, geometries: Sequence[Geometry]) -> tuple[Cut, ...]:
    """How a card of this type may be cut; nothing where nobody says."""
    return next((one.cuts for one in geometries if any(model in kind for model in one.models)), ())


def pick(cuts: Sequence[Cut], held: Held, need: float) -> Given:
    """The smallest free piece that is large enough. A card of which a piece is held stays cut as it is.

    Raises ValueError where there is none, which `largest` tells beforehand.
    """
    for cut in _possible(cuts, held):
        free = [(memory, at) for at, memory in enumerate(cut.pieces) if memory >= need and (cut.name, at) not in held]
        if free:
            memory, at = min(free)
            return Piece(cut.name, at), memory
    raise ValueError("No free piece is as large.")


def largest(cuts: Sequence[Cut], held: Held) -> float:
    """The memory of the largest free piece; below zero where there is none."""
    free = (
        memory for cut in _possible(cuts, held) for at, memory in enumerate(cut.pieces) if (cut.name, at) not in held
    )
    return max(free, default=-1.0)


def _possible(cuts: Sequence[Cut], held: Held) -> list[Cut]:
    names = {piece.cut for piece in held}
    return [cut for cut in cuts if not names or cut.name in names]
