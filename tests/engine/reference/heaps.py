"""Go's binary heap. The order of equal items is part of the semantics (FORMAT §6)."""

from collections.abc import Callable, Iterable
from typing import Any

Less = Callable[[Any, Any], bool]


class GoHeap:
    def __init__(self, less: Less, items: Iterable[Any] = ()) -> None:
        self.less, self.items = less, []
        for item in items:
            self.push(item)

    def __bool__(self) -> bool:
        return bool(self.items)

    def push(self, item: Any) -> None:
        self.items.append(item)
        j = len(self.items) - 1
        while j > 0:
            i = (j - 1) // 2
            if not self.less(self.items[j], self.items[i]):
                break
            self._swap(i, j)
            j = i

    def pop(self) -> Any:
        self._swap(0, len(self.items) - 1)
        item = self.items.pop()
        n, i = len(self.items), 0
        while 2 * i + 1 < n:
            j = 2 * i + 1
            if j + 1 < n and self.less(self.items[j + 1], self.items[j]):
                j += 1
            if not self.less(self.items[j], self.items[i]):
                break
            self._swap(i, j)
            i = j
        return item

    def _swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]
