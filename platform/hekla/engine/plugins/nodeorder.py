"""How much a place is liked, by the Kubernetes scores of the same names, each 0 to 100 times its weight.

least requested: the mean free part of cpu and memory after the placement; most requested: the used part; balanced: how
alike the used parts of cpu and memory are (`volcano-spec` §5.6).
"""

import numpy as np

from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.policy import PluginOption
from hekla.engine.session import Point, Session

_CPU_AND_MEMORY = slice(0, 2)


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""
    least = option.whole("leastrequested.weight", 1)
    most = option.whole("mostrequested.weight", 0)
    balanced = option.whole("balancedresource.weight", 1)

    def score(member: Member, table: NodeTable, rows: Rows) -> Vector:
        used = _used_part(member, table, rows)
        total: Vector = np.zeros(len(used))
        inside = (used <= 1.0) * used
        if least:
            free = np.floor(np.where(used <= 1.0, (1.0 - used) * 100, 0.0) + 1e-9)
            total += least * np.floor(free.mean(axis=1))
        if most:
            total += most * np.floor(np.floor(inside * 100 + 1e-9).mean(axis=1))
        if balanced:
            clipped = np.minimum(used, 1.0)
            total += balanced * np.floor((1.0 - np.abs(clipped[:, 0] - clipped[:, 1]) / 2) * 100 + 1e-9)
        return total

    session.register(Point.NODE_ORDER, option, score)


def _used_part(member: Member, table: NodeTable, rows: Rows) -> Vector:
    """Per node the used part of cpu and of memory once the task is there; all of it where there is none."""
    whole = table.allocatable[rows, _CPU_AND_MEMORY]
    after = table.used[rows, _CPU_AND_MEMORY] + member.request[_CPU_AND_MEMORY]
    return np.divide(after, whole, out=np.ones_like(whole), where=whole > 0)
