"""What a queue holds, asks for and was promised, and why it has no room (`volcano-spec` §5.2, §5.3)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import EPSILON, Mask, Vector
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Member
from hekla.engine.model import Queue
from hekla.engine.session import Session, infinite_where_absent
from hekla.engine.sums import Sums

DEVICE_CLASS = "deviceclass/"
"""How the name of a bound on claimed devices begins."""


@dataclass(eq=False)
class Account:
    """A queue's figures, rows over the session's dimensions.

    `real`: what it may hold at most. `inqueue`: what was let in and holds nothing yet. `elastic`: what it holds beyond
    the minimums of its jobs.
    """

    queue: Queue
    guarantee: Vector
    real: Vector
    deserved: Vector
    allocated: Vector
    request: Vector
    inqueue: Vector
    elastic: Vector

    @property
    def admits(self) -> Vector:
        """The room for jobs that want in: what others hold beyond their minimum does not stand in their way."""
        return self.real - self.allocated - self.inqueue + self.elastic

    @property
    def above(self) -> tuple[str, ...]:
        """The names of the queues that it counts for too, where queues are a tree."""
        return ()


def guarantees(session: Session) -> Vector:
    """What is promised to all queues together, those without jobs too."""
    rows = (session.dimensions.vector(queue.guarantee or {}) for queue in session.queues.values())
    return sum(rows, np.zeros_like(session.total))


def bound_of(session: Session, queue: Queue, whole: Vector, promised: Vector) -> Vector:
    """The most a queue may hold of a whole of which so much is promised to queues, this one among them."""
    own = session.dimensions.vector(queue.guarantee or {})
    return np.minimum(np.maximum(whole - promised, 0.0) + own, infinite_where_absent(session, queue.capability))


def limits(session: Session) -> Vector:
    """What there is of everything in the cluster; of claimed devices the nodes publish no amounts."""
    unpublished = np.array([name.startswith(DEVICE_CLASS) for name in session.dimensions.names])
    return np.where(unpublished, np.inf, session.total)


def count(accounts: Iterable[Account], sums: Sums) -> None:
    """Add the jobs of a queue to its figures (and to those of the queues above it)."""
    for account in accounts:
        account.allocated += sums.allocated
        account.request += sums.request
        account.elastic += sums.elastic
        account.inqueue += sums.inqueue


def together(session: Session, members: Iterable[Member]) -> Vector:
    """What tasks ask for in all."""
    return sum((member.request for member in members), np.zeros_like(session.total))


def exceeds(session: Session, wanted: Vector, room: Vector) -> Mask:
    """Where more is asked for than there is: without tolerance, and pods do not count (`volcano-spec` §3.5)."""
    short: Mask = (wanted > room) & (wanted > 0) & session.dimensions.without_pods
    return short


def refusal(session: Session, plugin: str, action: str, account: Account, need: Vector, room: Vector) -> Reason:
    """Why `need` finds no room in the queue; it never will if that is more than the queue may ever hold."""
    dimensions, whole = session.dimensions, limits(session)
    left = np.clip(room, 0.0, whole)
    cause, code = _why_full(session, account, exceeds(session, need, room))
    return Reason(
        cause=cause,
        action=action,
        plugin=plugin,
        code=code,
        need=dimensions.resources(need),
        have=dimensions.resources(np.where(np.isfinite(left) & (need > 0), left, need)),
        ever=bool((need < np.minimum(account.real, whole) + EPSILON)[dimensions.without_pods].all()),
    )


def _why_full(session: Session, account: Account, short: Mask) -> tuple[Cause, str]:
    """Whose bound it is that the `short` resources meet: the queue's own, or only the cluster's."""
    if not account.queue.is_open:
        return Cause.QUOTA, "queue_closed"
    if (account.real < limits(session))[short].any():
        return Cause.QUOTA, "queue_is_full"
    return Cause.CAPACITY, "cluster_is_full"
