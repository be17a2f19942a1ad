"""Nodes shared out among several schedulers: the places of one's own shard (`volcano-spec` §4, allocate).

`hard` keeps to one's own nodes. Otherwise they come first among those with room now, and then among those with room
later: idle-own, idle-other, future-own, future-other. It holds for tasks that `allocate` places one by one.
"""

from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import Mask, NodeTable
from hekla.engine.model import ClusterState
from hekla.engine.places import Places

Best = tuple[int, bool] | None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one's own shard. `is_hard`: no others."""

    mine: Mask
    is_hard: bool


def of_session(state: ClusterState, table: NodeTable) -> Rows | None:
    """None: nothing is shared out."""
    if state.shard is None:
        return None
    mine = np.array([node.name in state.shard.nodes for node in table.nodes], dtype=bool)
    return Rows(mine, state.shard.is_hard)


def best(places: Places, rows: Rows, within: Mask | None) -> Best:
    """As `Places.best`, one's own rows first."""
    allowed = np.ones_like(rows.mine) if within is None else within
    here = places.best(allowed & rows.mine)
    if rows.is_hard or (here is not None and here[1]):
        return here
    there = places.best(allowed & ~rows.mine)
    return there if there is not None and (there[1] or here is None) else here
