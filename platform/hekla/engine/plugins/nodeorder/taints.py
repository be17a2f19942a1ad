"""TaintToleration: the fewer taints of effect PreferNoSchedule that the pod does not tolerate, the better."""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.nodeindex import is_borne
from hekla.engine.places import UseScorer
from hekla.engine.plugins.nodeorder.scale import BEST, to_best
from hekla.engine.session import Session

_EFFECT = "PreferNoSchedule"


def alike(session: Session, member: Member) -> UseScorer | None:
    """Where no taint makes a difference, every node has 100, with nothing to compare."""
    return None if _unborne(session, member).any() else lambda use: np.full(len(use.used), float(BEST))


def preferred(session: Session, member: Member) -> Callable[[Rows], Vector] | None:
    """The nodes with most become 0."""
    raw = _unborne(session, member)
    return (lambda rows: BEST - to_best(raw[rows])) if raw.any() else None


def _unborne(session: Session, member: Member) -> Vector:
    raw: Vector = np.zeros(len(session.table))
    able = [toleration for toleration in member.task.tolerations if toleration.effect in ("", _EFFECT)]
    for taint, rows in session.nodes.taints.items():
        if taint.effect == _EFFECT and not is_borne(taint, able):
            raw += rows
    return raw
