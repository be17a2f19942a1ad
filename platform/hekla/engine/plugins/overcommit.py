"""Admission by the cluster as a whole: what is let in may exceed it only by a factor (`volcano-spec` §5.4)."""

import numpy as np

from hekla.engine.columns import EPSILON, Vector
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Gang
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_DEFAULT_FACTOR = 1.2


def open_session(session: Session, option: PluginOption) -> None:
    """Permit while the least resources of all that is let in stay within total x factor - used."""
    factor = max(option.number("overcommit-factor", _DEFAULT_FACTOR), 0.0)
    factor = factor if factor >= 1 else _DEFAULT_FACTOR
    budget: Vector = session.total * factor - session.table.used.sum(axis=0)
    known = (session.sums[name].claimed for name in session.queues if name in session.sums)
    inqueue: Vector = sum(known, np.zeros_like(budget))

    def enqueueable(gang: Gang) -> Vote:
        least = _minimum(gang, inqueue)
        asked = least > 0
        if (least + inqueue < budget + EPSILON)[asked].all():
            return Vote.PERMIT
        session.reasons[gang.job.uid] += (_refusal(session, least, budget - inqueue),)
        return Vote.REJECT

    def enqueued(gang: Gang) -> None:
        inqueue[:] += _minimum(gang, inqueue)

    session.register(Point.JOB_ENQUEUEABLE, option, enqueueable, is_lasting=True)
    session.register(Point.JOB_ENQUEUED, option, enqueued)


def _minimum(gang: Gang, like: Vector) -> Vector:
    return gang.minimum if gang.minimum is not None else np.zeros_like(like)


def _refusal(session: Session, least: Vector, left: Vector) -> Reason:
    return Reason(
        cause=Cause.CAPACITY,
        action="enqueue",
        plugin="overcommit",
        code="cluster_is_full",
        need=session.dimensions.resources(least),
        have=session.dimensions.resources(np.where(least > 0, left, 0.0)),
        ever=bool((least < session.total + EPSILON).all()),
    )
