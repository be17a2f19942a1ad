"""The cards of all nodes as columns, what is used of them, and which of them a share is given.

One row a node (those of the session's table), one column a card.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.model import Node
from hekla.engine.plugins.deviceshare import links
from hekla.engine.plugins.deviceshare.asks import Ask, Filters, Mode, Share
from hekla.engine.plugins.deviceshare.inventory import Card, cards_of, links_of, parse_links
from hekla.engine.plugins.deviceshare.pieces import NONE_HELD, Geometry, Held, Piece, largest, pick

ALL_CORES = 100.0
_EPSILON = 1e-6
Cards = npt.NDArray[np.intp]
Pieces = dict[int, Held]
"""By card of a row: which of its pieces are held."""


class Use(NamedTuple):
    """What is used of the cards of some rows."""

    memory: Vector
    sharers: Vector
    cores: Vector
    largest: Vector
    """The memory of the largest piece that is free; without bound where the hardware does not cut the card up."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a card that a task holds."""

    card: int
    memory: float
    cores: float
    piece: Piece | None = None


class CardTable:
    """See the module. `policy` is binpack, spread or empty."""

    def __init__(self, nodes: list[Node], mode: Mode, policy: str, geometries: Sequence[Geometry] = ()) -> None:
        self._mode, self._policy = mode, policy
        self.cards: list[tuple[Card, ...]] = [cards_of(node, mode, geometries) for node in nodes]
        shape = (len(nodes), max((len(cards) for cards in self.cards), default=0))
        self.memory, self._most = np.zeros(shape), np.zeros(shape)
        self._usable = np.zeros(shape, dtype=bool)
        for row, cards in enumerate(self.cards):
            self.memory[row, : len(cards)] = [card.memory for card in cards]
            self._most[row, : len(cards)] = [card.sharers for card in cards]
            self._usable[row, : len(cards)] = [card.is_usable for card in cards]
        self._unused = Use(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.full(shape, np.inf))
        for row, cards in enumerate(self.cards):
            self._unused.largest[row, : len(cards)] = [largest(c.cuts, NONE_HELD) if c.cuts else np.inf for c in cards]
        self._use = Use(*(one.copy() for one in self._unused))
        self._pieces: dict[int, Pieces] = {}
        """By row: which pieces are held."""
        self._kept: dict[int, Vector] = {}
        """By rule: how many parts of each card are held by pods that have it."""
        self._wanted: dict[Filters, Mask] = {Filters(): self._usable}
        self._links = _Links(nodes, self.cards)
        self.changed: list[int] = []
        """The rows on which something was taken or given back, in order."""

    @property
    def has_links(self) -> bool:
        """Whether any node says how its cards are linked."""
        return bool(self._links.of_rows)

    # What fits.

    def fits(self, ask: Ask, rows: Rows, *, when_empty: bool = False) -> Mask:
        """Per row: whether the cards can serve the ask (or could, if nobody used them)."""
        use = Use(*(one[rows] for one in self._unused)) if when_empty else self._seen_by(ask, rows)
        if len(ask.shares) == 1:
            share = ask.shares[0]
            enough: Mask = self._open(share, ask.filters, rows, use).sum(axis=1) >= share.count
            return enough
        numbers = np.arange(len(self.cards))[rows]
        pieces = {} if when_empty else self._pieces
        chosen = (
            self._choose_all(ask, row, Use(*(one[at].copy() for one in use)), dict(pieces.get(row, {})))
            for at, row in enumerate(numbers.tolist())
        )
        return np.array([parts is not None for parts in chosen], dtype=bool)

    def _seen_by(self, ask: Ask, rows: Rows) -> Use:
        """What is used; a card that the task must not share with who is on it has all its sharers."""
        use = Use(*(one[rows] for one in self._use))
        for kept in (self._kept[rule][rows] for rule in ask.rules if rule in self._kept):
            use = use._replace(sharers=np.where(kept > 0, np.inf, use.sharers))
        return use

    def _open(self, share: Share, filters: Filters, rows: Rows, use: Use) -> Mask:
        """Per row and card: whether the card can give one such part."""
        room = self._need(share, rows) <= self.memory[rows] - use.memory + _EPSILON
        room &= self._need(share, rows) <= use.largest
        room &= (use.sharers < self._most[rows]) & self._of_wish(filters)[rows]
        room &= use.cores + share.cores <= ALL_CORES + _EPSILON
        if share.is_whole or share.cores >= ALL_CORES:
            room &= use.sharers == 0
        if not share.cores:
            room &= use.cores < ALL_CORES
        return room

    def _need(self, share: Share, rows: Rows) -> Vector:
        """How much memory of each card the part takes; a whole card counts by its use alone."""
        whole = self.memory[rows]
        return np.full_like(whole, share.memory) if not share.percentage else whole * share.percentage / 100

    def _of_wish(self, filters: Filters) -> Mask:
        if filters not in self._wanted:
            wanted = self._usable.copy()
            for row, cards in enumerate(self.cards):
                wanted[row, : len(cards)] &= [_is_wanted(card, filters) for card in cards]
            self._wanted[filters] = wanted
        return self._wanted[filters]

    # What is given.

    def choose(self, ask: Ask, row: int) -> list[list[Part]] | None:
        """The parts for each container, none taken yet. None: the cards cannot serve the ask."""
        use = Use(*(one[0].copy() for one in self._seen_by(ask, slice(row, row + 1))))
        return self._choose_all(ask, row, use, dict(self._pieces.get(row, {})))

    def _choose_all(self, ask: Ask, row: int, use: Use, pieces: Pieces) -> list[list[Part]] | None:
        found = []
        for share in ask.shares:
            chosen = self._choose(share, ask.filters, row, use)
            if chosen is None:
                return None
            need = self._need(share, slice(row, row + 1))[0]
            parts = [self._part(row, card, float(need[card]), share.cores, pieces) for card in chosen]
            self._add(row, use, pieces, parts, 1)
            found.append(parts)
        return found

    def _choose(self, share: Share, filters: Filters, row: int, use: Use) -> tuple[int, ...] | None:
        at = slice(row, row + 1)
        room = self._open(share, filters, at, Use(*(one[None] for one in use)))[0]
        free = np.flatnonzero(room)
        if len(free) < share.count:
            return None
        matrix = self._links.of_rows.get(row)
        if matrix is not None and (share.is_whole or share.count > 1):
            return links.best_set(matrix, tuple(free.tolist()), share.count)
        return tuple(free[self._order(use)[free].argsort(kind="stable")][: share.count].tolist())

    def _part(self, row: int, card: int, need: float, cores: float, pieces: Pieces) -> Part:
        """As much of the card; of one that is cut up a whole piece."""
        if not (cuts := self.cards[row][card].cuts):
            return Part(card, need, cores)
        piece, memory = pick(cuts, pieces.get(card, NONE_HELD), need)
        return Part(card, memory, cores, piece)

    def _add(self, row: int, use: Use, pieces: Pieces, parts: list[Part], sign: int) -> None:
        """Count parts in what is used of the row."""
        for part in parts:
            use.memory[part.card] += sign * part.memory
            use.sharers[part.card] += sign
            use.cores[part.card] += sign * part.cores
            if part.piece is not None and (cuts := self.cards[row][part.card].cuts):
                held, one = pieces.get(part.card, NONE_HELD), {part.piece}
                pieces[part.card] = held | one if sign > 0 else held - one
                use.largest[part.card] = largest(cuts, pieces[part.card])

    def _order(self, use: Use) -> Vector:
        """The lowest goes first: the fullest card, the one with the fewest sharers, or by number.

        Virtual cards are given from the last one on, as Volcano does.
        """
        if self._policy == "binpack":
            return -use.memory
        if self._policy == "spread":
            return use.sharers
        numbers = np.arange(len(use.memory), dtype=float)
        return -numbers if self._mode is Mode.VIRTUAL else numbers

    def take(self, row: int, parts: list[Part], ask: Ask, sign: int = 1) -> None:
        """A task gets these parts, or gives them back."""
        self._add(row, Use(*(one[row] for one in self._use)), self._pieces.setdefault(row, {}), parts, sign)
        for rule in ask.rules:
            np.add.at(
                self._kept.setdefault(rule, np.zeros(self.memory.shape))[row], [part.card for part in parts], sign
            )
        self.changed.append(row)

    # What a place is worth.

    def scores(self, ask: Ask, rows: Rows) -> Vector:
        """0 to 100, by the policy: how full the card is afterwards, or whether it is used for the first time."""
        share, use = ask.shares[0], self._seen_by(ask, rows)
        room = self._open(share, ask.filters, rows, use)
        if not room.size:
            return np.zeros(len(room))
        order = np.array([self._order(Use(*one)) for one in zip(*use, strict=True)])
        best = np.where(room, order, np.inf).argmin(axis=1)
        at = np.arange(len(best)), best
        if self._policy == "spread":
            worth = 100.0 * (use.sharers[at] == 0)
        else:
            whole, after = self.memory[rows][at], use.memory[at] + self._need(share, rows)[at]
            worth = 100.0 * np.divide(after, whole, out=np.zeros_like(after), where=whole > 0)
        return np.where(room.any(axis=1), worth, 0.0)

    def link_scores(self, ask: Ask, rows: Rows) -> Vector:
        """0 to 100: how strong the weakest link of the set is that a row would give, beside the strongest there is."""
        share, use = ask.shares[0], self._seen_by(ask, rows)
        room = self._open(share, ask.filters, rows, use)
        numbers = np.arange(len(self.cards))[rows].tolist()
        return np.array([self._links.worth(row, free, share.count) for row, free in zip(numbers, room, strict=True)])


@dataclass
class _Links:
    """The links of the nodes that say them; what a set is worth is reckoned once for equal servers."""

    nodes: list[Node]
    cards: list[tuple[Card, ...]]
    of_rows: dict[int, Vector] = field(default_factory=dict)
    _parsed: dict[str, Vector] = field(default_factory=dict)
    _worth: dict[tuple[int, bytes, int], float] = field(default_factory=dict)
    _strongest: float = 0.0

    def __post_init__(self) -> None:
        for row, (node, cards) in enumerate(zip(self.nodes, self.cards, strict=True)):
            matrix = links_of(node, len(cards), self._parse) if cards else None
            if matrix is not None:
                self.of_rows[row] = matrix
        self._strongest = max((float(matrix.max(initial=0.0)) for matrix in self._parsed.values()), default=0.0)

    def _parse(self, text: str) -> Vector:
        if text not in self._parsed:
            self._parsed[text] = parse_links(text)
        return self._parsed[text]

    def worth(self, row: int, free: Mask, count: int) -> float:
        matrix = self.of_rows.get(row)
        if matrix is None or not self._strongest or free.sum() < count:
            return 0.0
        key = id(matrix), free.tobytes(), count
        if key not in self._worth:
            chosen = links.best_set(matrix, tuple(np.flatnonzero(free).tolist()), count)
            self._worth[key] = 100.0 * links.quality(matrix, chosen) / self._strongest
        return self._worth[key]


def _is_wanted(card: Card, filters: Filters) -> bool:
    kind = card.kind.lower()
    if filters.types and not any(word.lower() in kind for word in filters.types):
        return False
    if any(word.lower() in kind for word in filters.no_types):
        return False
    return (not filters.ids or card.uuid in filters.ids) and card.uuid not in filters.no_ids
