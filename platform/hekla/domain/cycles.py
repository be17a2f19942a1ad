"""Cycles of dependencies."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


def find_cycle(waits: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A cycle of names, each waiting for the next, with the first repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))  # graphlib lists the dependency before its dependent
    return ()
