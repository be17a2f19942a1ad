"""Priority queues: one with fixed ranks, and one whose order may change while items wait in it.

`HeapQueue` moves items exactly as Go's `container/heap`, because the order of ties is part of Volcano's semantics:
after a push, the item moves up; on a pop, first and last swap, then the item moves down; equal items do not swap.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")


class PriorityQueue(Protocol[Item]):
    """A queue from which the first item in order is popped."""

    def __len__(self) -> int: ...

    def push(self, item: Item) -> None: ...

    def pop(self) -> Item: ...

    def pop_equivalent(self) -> Sequence[str]: ...


class RankedQueue(Generic[Item]):
    """A priority queue for items with a fixed and unique rank.

    `classes`: sorted lists with the uids of equal items, of which only the first is compared with others. `item_of`:
    the item of a uid, called when it comes up.
    """

    def __init__(
        self,
        rank: Callable[[Item], Any],
        item_of: Callable[[str], Item],
        items: Iterable[Item] = (),
        classes: Iterable[Iterable[str]] = (),
    ) -> None:
        self._rank, self._item_of = rank, item_of
        self._items: list[tuple[Any, Item, deque[str]]] = [(rank(item), item, _empty()) for item in items]
        heapq.heapify(self._items)
        self._equivalent = _empty()
        for equivalent in classes:
            self._push_class(deque(equivalent))

    def __len__(self) -> int:
        return len(self._items) + len(self._equivalent)

    def push(self, item: Item) -> None:
        """Add an item."""
        heapq.heappush(self._items, (self._rank(item), item, _empty()))

    def pop(self) -> Item:
        """Remove and return the first item. Raises IndexError if there is none."""
        self._push_class(self._equivalent)
        _rank, item, self._equivalent = heapq.heappop(self._items)
        return item

    def first_rank(self) -> Any:  # noqa: ANN401
        """The rank of the first item. Raises IndexError if there is none."""
        self._push_class(self._equivalent)
        self._equivalent = _empty()
        return self._items[0][0]

    def pop_equivalent(self) -> Sequence[str]:
        """Remove the rest of the class of the last popped item. Returns its uids."""
        equivalent, self._equivalent = self._equivalent, _empty()
        return equivalent

    def _push_class(self, equivalent: deque[str]) -> None:
        if equivalent:
            first = self._item_of(equivalent.popleft())
            heapq.heappush(self._items, (self._rank(first), first, equivalent))


def _empty() -> deque[Any]:
    return deque()


class HeapQueue(Generic[Item]):
    """A binary heap. `before(a, b)`: whether a comes out before b."""

    def __init__(self, before: Callable[[Item, Item], bool], items: Iterable[Item] = ()) -> None:
        self._before = before
        self._items: list[Item] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        """Add an item."""
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
        """Remove and return the first item. Raises IndexError if there is none."""
        items = self._items
        if len(items) == 1:
            return items.pop()
        items[0], items[-1] = items[-1], items[0]
        first = items.pop()
        self._down()
        return first

    def pop_equivalent(self) -> Sequence[str]:
        """An empty sequence: this queue has no classes."""
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
