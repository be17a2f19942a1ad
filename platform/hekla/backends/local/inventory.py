"""All that is of a cluster's pods on this machine: looked at afresh, whatever records say."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hekla.backends.base import Inventory, PodKey
from hekla.backends.local import names, orders, processes, removal
from hekla.backends.local.podfolder import PodFolder


def look(place: Path) -> Inventory:
    """By the folders below, the locks of the shims and, where the system shows them, the processes."""
    jobs = names.folders(place)
    pods = [PodFolder(str(path)) for job in jobs for path in names.folders(job)]
    held = [orders.mark(order) for pod in pods if pod.holder() is not None and (order := pod.order())]
    alive = _keys([*held, *processes.marks(f"{place}{os.sep}")])
    kept = frozenset(job.name for job in jobs if removal.holds_more_than_logs(job))
    return Inventory(frozenset(alive), kept, frozenset(job.name for job in jobs))


def _keys(marks: Iterable[str]) -> Iterator[PodKey]:
    """A program may write anything into its own environment: what is no mark is none of ours."""
    for mark in marks:
        with contextlib.suppress(ValueError):
            yield names.key_of(mark)
