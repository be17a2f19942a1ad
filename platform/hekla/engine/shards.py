"""Node shards: nodes divided among several schedulers (`volcano-spec` §4, allocate).

A hard shard uses its own nodes only. A soft one prefers them, in this order: own idle, other idle, own future idle,
other future idle. This applies to pods that `allocate` places one by one.
"""

from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import Mask, NodeTable
from hekla.engine.model import ClusterState
from hekla.engine.node_fit import NodeFit

Best = tuple[int, bool] | None


@dataclass(frozen=True, slots=True)
class ShardRows:
    """The rows of this scheduler's shard. `is_hard`: no others."""

    mine: Mask
    is_hard: bool


def of_session(state: ClusterState, table: NodeTable) -> ShardRows | None:
    """The shard as rows; None without one."""
    if state.shard is None:
        return None
    mine = np.array([node.name in state.shard.nodes for node in table.nodes], dtype=bool)
    return ShardRows(mine, state.shard.is_hard)


def best_node(node_fit: NodeFit, rows: ShardRows, within: Mask | None) -> Best:
    """As `NodeFit.best_node`, own rows first."""
    allowed = np.ones_like(rows.mine) if within is None else within
    here = node_fit.best_node(allowed & rows.mine)
    if rows.is_hard or (here is not None and here[1]):
        return here
    there = node_fit.best_node(allowed & ~rows.mine)
    return there if there is not None and (there[1] or here is None) else here
