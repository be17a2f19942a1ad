"""Starts and stops of pods one after the other, for backends that gain nothing from parallel calls."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hekla.backends.base import BackendError

Item = TypeVar("Item")


def one_by_one(
    work: Callable[[Item], None], items: Iterable[Item], heartbeat: Callable[[], None]
) -> Iterator[tuple[Item, BackendError | None]]:
    """Implement `PodRunner.start_many` and `PodRunner.stop_many` sequentially, if parallel calls gain nothing."""
    for item in items:
        heartbeat()
        try:
            work(item)
        except BackendError as error:
            yield item, error
        else:
            yield item, None
