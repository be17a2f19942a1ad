"""A priority queue under an order that may change while items wait in it.

The moves are those of Go’s `container/heap` (up after a push; on a pop first and last change places, then down; equal
items keep the parent), since the order of ties is part of the semantics that the engine follows.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")


class Waiting(Protocol[Item]):
    """Items, of which the first comes out first."""

    def __len__(self) -> int: ...

    def push(self, item: Item) -> None: ...

    def pop(self) -> Item: ...

    def behind(self) -> Sequence[Item]: ...


class Ranked(Generic[Item]):
    """The same for items whose rank stays as it is while they are in it. No two have the same rank.

    Of `lines`, each of them in order, only the first is compared with others; `behind` are those in the line of the one
    that came out last, which are taken out.
    """

    def __init__(
        self, rank: Callable[[Item], Any], items: Iterable[Item] = (), lines: Iterable[Iterable[Item]] = ()
    ) -> None:
        self._rank = rank
        self._items: list[tuple[Any, Item, deque[Item]]] = [(rank(item), item, _nobody()) for item in items]
        heapq.heapify(self._items)
        self._line = _nobody()
        for line in lines:
            self._enter(deque(line))

    def __len__(self) -> int:
        return len(self._items) + len(self._line)

    def push(self, item: Item) -> None:
        """Put one in."""
        heapq.heappush(self._items, (self._rank(item), item, _nobody()))

    def pop(self) -> Item:
        """Take the first out. Raises IndexError when there is none."""
        self._enter(self._line)
        _rank, item, self._line = heapq.heappop(self._items)
        return item

    def behind(self) -> Sequence[Item]:
        """See the class."""
        line, self._line = self._line, _nobody()
        return line

    def _enter(self, line: deque[Item]) -> None:
        if line:
            first = line.popleft()
            heapq.heappush(self._items, (self._rank(first), first, line))


def _nobody() -> deque[Any]:
    return deque()


class Heap(Generic[Item]):
    """`before(a, b)`: a must come out first."""

    def __init__(self, before: Callable[[Item, Item], bool], items: Iterable[Item] = ()) -> None:
        self._before = before
        self._items: list[Item] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        """Put one in."""
        items = self._items
        items.append(item)
        at = len(items) - 1
        while at > 0:
            parent = (at - 1) // 2
            if not self._before(items[at], items[parent]):
                return
            items[at], items[parent] = items[parent], items[at]
            at = parent

    def pop(self) -> Item:
        """Take the first out. Raises IndexError when there is none."""
        items = self._items
        items[0], items[-1] = items[-1], items[0]
        first = items.pop()
        self._down()
        return first

    def behind(self) -> Sequence[Item]:
        """Nobody: here each is for itself."""
        return ()

    def _down(self) -> None:
        items, at = self._items, 0
        while (child := 2 * at + 1) < len(items):
            if child + 1 < len(items) and self._before(items[child + 1], items[child]):
                child += 1
            if not self._before(items[child], items[at]):
                return
            items[at], items[child] = items[child], items[at]
            at = child
