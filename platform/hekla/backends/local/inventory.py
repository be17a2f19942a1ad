"""The inventory of a cluster's pods on this machine, from the machine itself and not from records."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hekla.backends.base import Inventory, PodKey
from hekla.backends.local import names, orders, processes, removal
from hekla.backends.local.containers.runtime import Runtime
from hekla.backends.local.pod_folder import PodFolder


def list_inventory(root: Path, runtime: Runtime | None) -> Inventory:
    """The inventory, from the folders below `root`, the locks of the shims and, if possible, the processes.

    Containers count as alive until they are removed. Raises BackendError if their engine does not answer.
    """
    jobs = names.list_folders(root)
    pods = [PodFolder(str(path)) for job in jobs for path in names.list_folders(job)]
    held = [mark for pod in pods if (mark := _running_mark(pod))]
    contained = runtime.containers().values() if runtime else ()
    alive = _keys([*held, *processes.marks(f"{root}{os.sep}"), *contained])
    attached = frozenset(job.name for job in jobs if removal.holds_more_than_logs(job))
    return Inventory(frozenset(alive), attached, frozenset(job.name for job in jobs))


def _running_mark(pod: PodFolder) -> str:
    """The mark of a pod with a shim; empty without, or if its files are damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        if pod.holder() is not None and (order := pod.order()):
            return orders.mark(order)
    return ""


def _keys(marks: Iterable[str]) -> Iterator[PodKey]:
    """The keys of these marks. Invalid marks are ignored: programs may write anything into their environment."""
    for mark in marks:
        with contextlib.suppress(ValueError):
            yield names.key_of(mark)
