"""Work goes to its data: nodes that have a job's data sets in their cache are liked better.

A node's annotation `hekla.io/cached-datasets` and a job's annotation `hekla.io/datasets` list names, separated by
commas. The score is the part of the job's data sets that the node has, times 100, times the argument `weight` (10: more
than the usual scores together, for copying data takes longer than a less even load costs).
"""

import numpy as np

from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

CACHED, WANTED = "hekla.io/cached-datasets", "hekla.io/datasets"
_DEFAULT_WEIGHT = 10


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""
    weight = option.number("weight", _DEFAULT_WEIGHT)
    cached = [_names(node.annotations.get(CACHED, "")) for node in session.table.nodes]
    scores: dict[frozenset[str], Vector] = {}

    def score(member: Member, table: NodeTable, rows: Rows) -> Vector:
        wanted = _wanted(member)
        if wanted not in scores:
            parts = [len(wanted & names) / len(wanted) if wanted else 0.0 for names in cached]
            scores[wanted] = np.array(parts).reshape(len(table)) * 100 * weight
        return scores[wanted][rows]

    session.register(Point.NODE_ORDER, option, score)
    session.register(Point.TASK_CLASS, option, _wanted)


def _wanted(member: Member) -> frozenset[str]:
    return _names(member.job.job.annotations.get(WANTED, ""))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
