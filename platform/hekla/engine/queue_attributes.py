"""Attributes of a queue: capability, deserved, allocated, inqueue …, and the reason if it is full.

Source: `volcano-spec` §5.2, §5.3. Volcano calls them `queueAttr`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import EPSILON, Mask, Vector
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.job_info import PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.queue_totals import QueueTotals
from hekla.engine.session import Session

DEVICE_CLASS_PREFIX = "deviceclass/"
"""Prefix of a capability that limits claimed devices."""


@dataclass(eq=False)
class QueueAttributes:
    """A queue's amounts, as rows over the session's dimensions.

    `real_capability`: the most it may hold. `inqueue`: minimums of admitted jobs that hold nothing yet. `elastic`: what
    it holds beyond the minimums of its jobs.
    """

    queue: QueueSpec
    guarantee: Vector
    real_capability: Vector
    deserved: Vector
    allocated: Vector
    request: Vector
    inqueue: Vector
    elastic: Vector

    @property
    def admission_room(self) -> Vector:
        """Room for new jobs: what running jobs hold beyond their minimum does not count."""
        return self.real_capability - self.allocated - self.inqueue + self.elastic

    @property
    def ancestors(self) -> tuple[str, ...]:
        """Names of the parent queues up to the root; empty without a hierarchy."""
        return ()


def total_guarantee(session: Session) -> Vector:
    """The sum of the guarantees of all queues, with or without jobs."""
    rows = (session.dimensions.row(queue.guarantee) for queue in session.queues.values() if queue.guarantee)
    return sum(rows, np.zeros_like(session.total_resources))


def real_capability(session: Session, queue: QueueSpec, whole: Vector, promised: Vector) -> Vector:
    """The most a queue may hold: `whole` without the guarantees of others, at most its capability.

    `promised`: the guarantees of all, its own included.
    """
    own = session.dimensions.row(queue.guarantee or {})
    return np.minimum(np.maximum(whole - promised, 0.0) + own, session.dimensions.limits(queue.capability))


def cluster_limits(session: Session) -> Vector:
    """The resources of the cluster; infinite for claimed devices, of which nodes publish no amounts."""
    unpublished = np.array([name.startswith(DEVICE_CLASS_PREFIX) for name in session.dimensions.names])
    return np.where(unpublished, np.inf, session.total_resources)


def add_totals(path: Iterable[QueueAttributes], sums: QueueTotals) -> None:
    """Add the totals of a queue's jobs to its attributes and to those of its parents."""
    for attributes in path:
        attributes.allocated += sums.allocated
        attributes.request += sums.request
        attributes.elastic += sums.elastic
        attributes.inqueue += sums.inqueue


def total_request(session: Session, pods: Iterable[PodInfo]) -> Vector:
    """The sum of the requests of these pods."""
    return sum((pod.request for pod in pods), np.zeros_like(session.total_resources))


def exceeds(session: Session, wanted: Vector, room: Vector) -> Mask:
    """Dimensions in which `wanted` exceeds `room`, without tolerance and without pods (`volcano-spec` §3.5)."""
    short: Mask = (wanted > room) & (wanted > 0) & session.dimensions.without_pods
    return short


def no_room_reason(
    session: Session,
    plugin: str,
    action: str,
    attributes: QueueAttributes,
    need: Vector,
    room: Vector,
    limit: Vector | None = None,
) -> PendingReason:
    """The reason that `need` exceeds the queue's room; `ever` is False if it exceeds all that it may ever hold.

    `limit`: the amount that the queue fills, by default its real capability. What it holds of that is not left, even if
    it is more than the minimum of its jobs.
    """
    dimensions, whole = session.dimensions, cluster_limits(session)
    limit = np.minimum(attributes.real_capability if limit is None else limit, whole)
    short, has_limit = exceeds(session, need, room), np.isfinite(limit) & (need > 0)
    left = np.clip(np.where(short, np.minimum(room, limit - attributes.allocated), room), 0.0, whole)
    cause, code = _why_full(session, attributes, short)
    return PendingReason(
        cause=cause,
        action=action,
        plugin=plugin,
        code=code,
        need=dimensions.resources(need),
        have=dimensions.resources(np.where(np.isfinite(left) & (need > 0), left, need)),
        free=dimensions.resources(np.where(has_limit, limit - attributes.allocated, 0.0)),
        limit=dimensions.resources(np.where(has_limit, limit, 0.0)),
        queue=attributes.queue.name,
        ever=bool((need < np.minimum(attributes.real_capability, whole) + EPSILON)[dimensions.without_pods].all()),
    )


def _why_full(session: Session, attributes: QueueAttributes, short: Mask) -> tuple[Cause, str]:
    """Whether the queue or the cluster limits the `short` resources."""
    if session.is_closed(attributes.queue):
        return Cause.QUOTA, "queue_closed"
    if (attributes.real_capability < cluster_limits(session))[short].any():
        return Cause.QUOTA, "queue_is_full"
    return Cause.CAPACITY, "cluster_is_full"
