"""The cards of all nodes as columns: their usage, and the choice of cards for a request.

One row per node (as in the session's table), one column per card.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.model import NodeSpec
from hekla.engine.plugins.deviceshare import links
from hekla.engine.plugins.deviceshare.inventory import Card, cards_of, links_of, parse_links
from hekla.engine.plugins.deviceshare.mig import (
    NONE_HELD,
    AllowedGeometries,
    HeldInstances,
    MigInstance,
    largest_free,
    pick_instance,
)
from hekla.engine.plugins.deviceshare.requests import CardFilter, CardRequest, ContainerRequest, Mode

ALL_CORES = 100.0
_EPSILON = 1e-6
Cards = npt.NDArray[np.intp]
Pieces = dict[int, HeldInstances]
"""By card of a row: the MIG instances that are held."""


class CardUsage(NamedTuple):
    """The usage of the cards of some rows."""

    memory: Vector
    sharers: Vector
    cores: Vector
    largest_instance: Vector
    """The memory of the largest free MIG instance; infinite for a card without MIG."""


@dataclass(frozen=True, slots=True)
class CardSlice:
    """A part of a card that a pod holds."""

    card: int
    memory: float
    cores: float
    instance: MigInstance | None = None


class CardTable:
    """The cards of all nodes. `policy` is binpack, spread or empty."""

    def __init__(
        self, nodes: list[NodeSpec], mode: Mode, policy: str, geometries: Sequence[AllowedGeometries] = ()
    ) -> None:
        self._mode, self._policy = mode, policy
        self.cards: list[tuple[Card, ...]] = [cards_of(node, mode, geometries) for node in nodes]
        shape = (len(nodes), max((len(cards) for cards in self.cards), default=0))
        self.memory, self._max_sharers = np.zeros(shape), np.zeros(shape)
        self._usable = np.zeros(shape, dtype=bool)
        for row, cards in enumerate(self.cards):
            self.memory[row, : len(cards)] = [card.memory for card in cards]
            self._max_sharers[row, : len(cards)] = [card.sharers for card in cards]
            self._usable[row, : len(cards)] = [card.is_usable for card in cards]
        self._empty = CardUsage(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.full(shape, np.inf))
        for row, cards in enumerate(self.cards):
            self._empty.largest_instance[row, : len(cards)] = [
                largest_free(c.geometries, NONE_HELD) if c.geometries else np.inf for c in cards
            ]
        self._usage = CardUsage(*(one.copy() for one in self._empty))
        self._instances: dict[int, Pieces] = {}
        """By row: the MIG instances that are held."""
        self._exclusive: dict[int, Vector] = {}
        """By rule: how many parts of each card are held by pods with this rule."""
        self._matches: dict[CardFilter, Mask] = {CardFilter(): self._usable}
        self._links = _Links(nodes, self.cards)
        self.change_log: list[int] = []
        """The rows where cards were allocated or released, in order."""

    @property
    def has_links(self) -> bool:
        """Whether any node has an annotation with the links of its cards."""
        return bool(self._links.by_row)

    # Feasibility.

    def fits(self, request: CardRequest, rows: Rows, *, when_empty: bool = False) -> Mask:
        """Per row: whether the cards can serve the request now (or, `when_empty`, if all were free)."""
        usage = CardUsage(*(one[rows] for one in self._empty)) if when_empty else self._usage_for(request, rows)
        if len(request.shares) == 1:
            share = request.shares[0]
            enough: Mask = self._has_room(share, request.filters, rows, usage).sum(axis=1) >= share.count
            return enough
        numbers = np.arange(len(self.cards))[rows]
        instances = {} if when_empty else self._instances
        chosen = (
            self._choose_all(request, row, CardUsage(*(one[at].copy() for one in usage)), dict(instances.get(row, {})))
            for at, row in enumerate(numbers.tolist())
        )
        return np.array([slices is not None for slices in chosen], dtype=bool)

    def _usage_for(self, request: CardRequest, rows: Rows) -> CardUsage:
        """The usage; a card that the pod must not share with its current pods counts as fully shared."""
        usage = CardUsage(*(one[rows] for one in self._usage))
        for exclusive in (self._exclusive[rule][rows] for rule in request.rules if rule in self._exclusive):
            usage = usage._replace(sharers=np.where(exclusive > 0, np.inf, usage.sharers))
        return usage

    def _has_room(self, share: ContainerRequest, filters: CardFilter, rows: Rows, usage: CardUsage) -> Mask:
        """Per row and card: whether the card has room for one such part."""
        room = self._need(share, rows) <= self.memory[rows] - usage.memory + _EPSILON
        room &= self._need(share, rows) <= usage.largest_instance
        room &= (usage.sharers < self._max_sharers[rows]) & self._matching(filters)[rows]
        room &= usage.cores + share.cores <= ALL_CORES + _EPSILON
        if share.is_whole or share.cores >= ALL_CORES:
            room &= usage.sharers == 0
        if not share.cores:
            room &= usage.cores < ALL_CORES
        return room

    def _need(self, share: ContainerRequest, rows: Rows) -> Vector:
        """The memory of each card that the part takes; 0 for a whole card, which must only be unused."""
        whole = self.memory[rows]
        return np.full_like(whole, share.memory) if not share.percentage else whole * share.percentage / 100

    def _matching(self, filters: CardFilter) -> Mask:
        if filters not in self._matches:
            wanted = self._usable.copy()
            for row, cards in enumerate(self.cards):
                wanted[row, : len(cards)] &= [_is_wanted(card, filters) for card in cards]
            self._matches[filters] = wanted
        return self._matches[filters]

    # Allocation.

    def choose(self, request: CardRequest, row: int) -> list[list[CardSlice]] | None:
        """The slices for each container, not yet allocated. None: the cards cannot serve the request."""
        usage = CardUsage(*(one[0].copy() for one in self._usage_for(request, slice(row, row + 1))))
        return self._choose_all(request, row, usage, dict(self._instances.get(row, {})))

    def _choose_all(
        self, request: CardRequest, row: int, usage: CardUsage, instances: Pieces
    ) -> list[list[CardSlice]] | None:
        found = []
        for share in request.shares:
            chosen = self._choose(share, request.filters, row, usage)
            if chosen is None:
                return None
            need = self._need(share, slice(row, row + 1))[0]
            slices = [self._slice(row, card, float(need[card]), share.cores, instances) for card in chosen]
            self._add(row, usage, instances, slices, 1)
            found.append(slices)
        return found

    def _choose(
        self, share: ContainerRequest, filters: CardFilter, row: int, usage: CardUsage
    ) -> tuple[int, ...] | None:
        at = slice(row, row + 1)
        room = self._has_room(share, filters, at, CardUsage(*(one[None] for one in usage)))[0]
        free = np.flatnonzero(room)
        if len(free) < share.count:
            return None
        matrix = self._links.by_row.get(row)
        if matrix is not None and (share.is_whole or share.count > 1):
            return links.best_set(matrix, tuple(free.tolist()), share.count)
        return tuple(free[self._order(usage)[free].argsort(kind="stable")][: share.count].tolist())

    def _slice(self, row: int, card: int, need: float, cores: float, instances: Pieces) -> CardSlice:
        """The slice of a card; a MIG card gives a whole instance."""
        if not (geometries := self.cards[row][card].geometries):
            return CardSlice(card, need, cores)
        instance, memory = pick_instance(geometries, instances.get(card, NONE_HELD), need)
        return CardSlice(card, memory, cores, instance)

    def _add(self, row: int, usage: CardUsage, instances: Pieces, slices: list[CardSlice], sign: int) -> None:
        """Add slices to the usage of the row (sign -1: subtract them)."""
        for card_slice in slices:
            usage.memory[card_slice.card] += sign * card_slice.memory
            usage.sharers[card_slice.card] += sign
            usage.cores[card_slice.card] += sign * card_slice.cores
            if card_slice.instance is not None and (geometries := self.cards[row][card_slice.card].geometries):
                held, one = instances.get(card_slice.card, NONE_HELD), {card_slice.instance}
                instances[card_slice.card] = held | one if sign > 0 else held - one
                usage.largest_instance[card_slice.card] = largest_free(geometries, instances[card_slice.card])

    def _order(self, usage: CardUsage) -> Vector:
        """The sort key, lowest first: the fullest card (binpack), the fewest sharers (spread), or the number.

        Virtual cards are allocated from the last one on, as in Volcano.
        """
        if self._policy == "binpack":
            return -usage.memory
        if self._policy == "spread":
            return usage.sharers
        numbers = np.arange(len(usage.memory), dtype=float)
        return -numbers if self._mode is Mode.VIRTUAL else numbers

    def allocate(self, row: int, slices: list[CardSlice], request: CardRequest, sign: int = 1) -> None:
        """Allocate slices to a pod (sign -1: release them)."""
        self._add(row, CardUsage(*(one[row] for one in self._usage)), self._instances.setdefault(row, {}), slices, sign)
        for rule in request.rules:
            np.add.at(
                self._exclusive.setdefault(rule, np.zeros(self.memory.shape))[row],
                [card_slice.card for card_slice in slices],
                sign,
            )
        self.change_log.append(row)

    # Scores.

    def scores(self, request: CardRequest, rows: Rows) -> Vector:
        """Scores from 0 to 100: how full the chosen card gets; with the policy spread, 100 if it was unused."""
        share, usage = request.shares[0], self._usage_for(request, rows)
        room = self._has_room(share, request.filters, rows, usage)
        if not room.size:
            return np.zeros(len(room))
        order = np.array([self._order(CardUsage(*one)) for one in zip(*usage, strict=True)])
        best = np.where(room, order, np.inf).argmin(axis=1)
        at = np.arange(len(best)), best
        if self._policy == "spread":
            worth = 100.0 * (usage.sharers[at] == 0)
        else:
            whole, after = self.memory[rows][at], usage.memory[at] + self._need(share, rows)[at]
            worth = 100.0 * np.divide(after, whole, out=np.zeros_like(after), where=whole > 0)
        return np.where(room.any(axis=1), worth, 0.0)

    def link_scores(self, request: CardRequest, rows: Rows) -> Vector:
        """Scores from 0 to 100: the weakest link of the chosen cards, relative to the strongest link of all nodes."""
        share, usage = request.shares[0], self._usage_for(request, rows)
        room = self._has_room(share, request.filters, rows, usage)
        numbers = np.arange(len(self.cards))[rows].tolist()
        return np.array([self._links.score(row, free, share.count) for row, free in zip(numbers, room, strict=True)])


@dataclass
class _Links:
    """The card links of nodes; the score of a set is computed once for equal nodes."""

    nodes: list[NodeSpec]
    cards: list[tuple[Card, ...]]
    by_row: dict[int, Vector] = field(default_factory=dict)
    _parsed: dict[str, Vector] = field(default_factory=dict)
    _worth: dict[tuple[int, bytes, int], float] = field(default_factory=dict)
    _strongest: float = 0.0

    def __post_init__(self) -> None:
        for row, (node, cards) in enumerate(zip(self.nodes, self.cards, strict=True)):
            matrix = links_of(node, len(cards), self._parse) if cards else None
            if matrix is not None:
                self.by_row[row] = matrix
        self._strongest = max((float(matrix.max(initial=0.0)) for matrix in self._parsed.values()), default=0.0)

    def _parse(self, text: str) -> Vector:
        if text not in self._parsed:
            self._parsed[text] = parse_links(text)
        return self._parsed[text]

    def score(self, row: int, free: Mask, count: int) -> float:
        matrix = self.by_row.get(row)
        if matrix is None or not self._strongest or free.sum() < count:
            return 0.0
        key = id(matrix), free.tobytes(), count
        if key not in self._worth:
            chosen = links.best_set(matrix, tuple(np.flatnonzero(free).tolist()), count)
            self._worth[key] = 100.0 * links.quality(matrix, chosen) / self._strongest
        return self._worth[key]


def _is_wanted(card: Card, filters: CardFilter) -> bool:
    kind = card.kind.lower()
    if filters.types and not any(word.lower() in kind for word in filters.types):
        return False
    if any(word.lower() in kind for word in filters.no_types):
        return False
    return (not filters.ids or card.uuid in filters.ids) and card.uuid not in filters.no_ids
