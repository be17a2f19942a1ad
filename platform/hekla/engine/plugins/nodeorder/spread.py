"""PodTopologySpread, ScheduleAnyway: the fewer of these pods around, the better.

A node without the labels of all such constraints gets nothing.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.conditions import Spread
from hekla.engine.gangs import Member
from hekla.engine.plugins.nodeorder.scale import BEST
from hekla.engine.session import Session

_HOSTNAME = "kubernetes.io/hostname"
Part = Callable[[Rows, Mask], Vector]


def preferred(session: Session, member: Member) -> Callable[[Rows], Vector] | None:
    """The nodes with fewest become 100."""
    soft = [constraint for constraint in member.task.conditions.spread if not constraint.is_hard]
    if not soft:
        return None
    labelled: Mask = np.logical_and.reduce([session.nodes.domain(one.topology_key).has for one in soft])
    parts = [_part(session, member, one, labelled) for one in soft]
    return lambda rows: _scaled(rows, labelled[rows], parts)


def _part(session: Session, member: Member, constraint: Spread, labelled: Mask) -> Part:
    """Pods around times a weight that grows with the number of values there are to choose from."""
    domain, pods = session.nodes.domain(constraint.topology_key), session.census.staying(constraint.pods)
    counts_here = labelled & session.nodes.counted_for(member.task, constraint)
    by_node = constraint.topology_key == _HOSTNAME

    def raw(rows: Rows, asked: Mask) -> Vector:
        choices = int(asked.sum()) if by_node else len(np.unique(domain.codes[rows][asked]))
        around = pods[rows] if by_node else domain.around(np.where(counts_here, pods, 0))[rows]
        found: Vector = around * np.log(choices + 2) + (constraint.max_skew - 1)
        return found

    return raw


def _scaled(rows: Rows, asked: Mask, parts: Sequence[Part]) -> Vector:
    raw = np.floor(sum((part(rows, asked) for part in parts), np.zeros(len(asked))) + 0.5)
    if not asked.any():
        return np.zeros(len(asked))
    most, least = raw[asked].max(), raw[asked].min()
    scores = np.floor_divide(BEST * (most + least - raw), most) if most > 0 else np.full(len(raw), float(BEST))
    return np.where(asked, scores, 0.0)
