"""Divides the cluster among queues by weight: deserved amounts, order, and room (`volcano-spec` §5.2)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hekla.engine import queue_attributes
from hekla.engine.columns import EPSILON, Vector, fits, fits_one, share
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.share_rounds import ShareRound

Evictable = Callable[[JobInfo, Sequence[PodInfo], str], list[PodInfo] | None]


class ProportionAttributes(queue_attributes.QueueAttributes):
    """A queue's attributes and its share."""

    @property
    def share(self) -> float:
        return share(self.allocated, self.deserved)


ByQueue = dict[str, ProportionAttributes]

NEEDS: tuple[Need, ...] = ()


def open_session(session: Session, option: PluginOption) -> None:
    """Divide the cluster among the queues that have jobs, and register functions for the division."""
    by_queue = _attributes_by_queue(session)
    _divide_by_weight(session, list(by_queue.values()))
    _share_by_weight(session, option, by_queue)
    _admit(session, option, by_queue)
    _limit_to_deserved(session, option, by_queue)


def _share_by_weight(session: Session, option: PluginOption, by_queue: ByQueue) -> None:
    """Track and report what each queue holds; order queues by priority, then by the smaller share."""

    def order(left: QueueSpec, right: QueueSpec) -> int:
        if left.priority != right.priority:
            return right.priority - left.priority
        mine, other = _share_of(by_queue, left), _share_of(by_queue, right)
        return (mine > other) - (mine < other)

    def update(pod: PodInfo, _row: int, sign: int) -> None:
        by_queue[pod.job.group.queue].allocated += pod.request if sign > 0 else -pod.request

    def attributes_of(queue: QueueSpec) -> ProportionAttributes:
        return by_queue.get(queue.name) or _attributes(session, queue, queue_attributes.total_guarantee(session))

    session.on_change.append(update)
    session.register(ExtensionPoint.QUEUE_ORDER, option, order)
    session.register(ExtensionPoint.QUEUE_SHARE, option, partial(_share_with, session, by_queue))
    session.register(ExtensionPoint.QUEUE_ACCOUNT, option, attributes_of)


def _admit(session: Session, option: PluginOption, by_queue: ByQueue) -> None:
    """Admit jobs while their queue has room."""

    def enqueueable(job: JobInfo) -> Vote:
        attributes = by_queue[job.group.queue]
        least = job.min_resources if job.min_resources is not None else np.zeros_like(attributes.real_capability)
        room = attributes.admission_room
        if not session.is_closed(attributes.queue) and not queue_attributes.exceeds(session, least, room).any():
            return Vote.PERMIT
        if not session.is_explained:
            return Vote.REJECT
        reason = queue_attributes.no_room_reason(session, "proportion", "enqueue", attributes, least, room)
        session.reasons[job.group.uid] += (reason,)
        return Vote.REJECT

    def enqueued(job: JobInfo) -> None:
        if job.min_resources is not None:
            by_queue[job.group.queue].inqueue += job.min_resources

    session.register(ExtensionPoint.JOB_ENQUEUEABLE, option, enqueueable, is_cacheable=True)
    session.register(ExtensionPoint.JOB_ENQUEUED, option, enqueued)


def _limit_to_deserved(session: Session, option: PluginOption, by_queue: ByQueue) -> None:
    """Allocate and reclaim up to what a queue deserves, and evict only what is held above that."""

    limited = np.flatnonzero(session.dimensions.without_pods).tolist()
    most_of: dict[str, list[float]] = {name: one.deserved.tolist() for name, one in by_queue.items()}

    def overused(queue: QueueSpec) -> bool:
        attributes = by_queue[queue.name]
        return fits_one(attributes.deserved, attributes.allocated)

    def has_share(queue: QueueSpec, wanted: Vector) -> bool:
        held, most = (by_queue[queue.name].allocated + wanted).tolist(), most_of[queue.name]
        for at in limited:
            if held[at] > most[at] and wanted[at] > 0:
                return False
        return not session.is_closed(queue)

    def preemptive(queue: QueueSpec, pods: Sequence[PodInfo]) -> bool:
        return has_share(queue, queue_attributes.total_request(session, pods))

    def allocatable(queue: QueueSpec, pod: PodInfo) -> bool:
        return has_share(queue, pod.request)

    def why_not(queue: QueueSpec, pods: Sequence[PodInfo]) -> PendingReason:
        attributes, need = by_queue[queue.name], queue_attributes.total_request(session, pods)
        room = attributes.deserved - attributes.allocated
        reason = queue_attributes.no_room_reason(
            session, "proportion", "allocate", attributes, need, room, attributes.deserved
        )
        is_closed = session.is_closed(queue)
        return reason if is_closed else replace(reason, cause=Cause.QUOTA, code="queue_share_used")

    def reclaimable(_for: PodInfo | JobInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            attributes = by_queue[victim.job.group.queue]
            held = left.setdefault(attributes.queue.name, attributes.allocated.copy())
            if not fits(held, attributes.deserved):
                held -= victim.request
                chosen.append(victim)
        return chosen

    session.register(ExtensionPoint.OVERUSED, option, overused)
    session.register(ExtensionPoint.PREEMPTIVE, option, preemptive, is_cacheable=True)
    session.register(ExtensionPoint.ALLOCATABLE, option, allocatable, is_cacheable=True)
    session.register(ExtensionPoint.WHY_NOT_ALLOCATABLE, option, why_not)
    session.register(ExtensionPoint.RECLAIMABLE, option, reclaimable, is_cacheable=True)
    if not session.policy.follows_volcano:
        session.register(ExtensionPoint.EVICTABLE, option, _only_for_reclaim(reclaimable), is_cacheable=True)


def _only_for_reclaim(reclaimable: Callable[[JobInfo, Sequence[PodInfo]], list[PodInfo]]) -> Evictable:
    """No queue is pushed below what it deserves by another queue; Volcano's gangreclaim allows that."""
    return lambda job, candidates, action: reclaimable(job, candidates) if action == "gangreclaim" else None


def _share_of(by_queue: ByQueue, queue: QueueSpec) -> float:
    return by_queue[queue.name].share if queue.name in by_queue else 0.0


def _share_with(
    session: Session,
    by_queue: ByQueue,
    queue: QueueSpec,
    more: Sequence[PodInfo],
    less: Sequence[PodInfo],
) -> float:
    attributes = by_queue[queue.name]
    held = (
        attributes.allocated
        + queue_attributes.total_request(session, more)
        - queue_attributes.total_request(session, less)
    )
    return share(held, attributes.deserved)


def _attributes_by_queue(session: Session) -> ByQueue:
    promised, found = queue_attributes.total_guarantee(session), {}
    for queue in session.queues.values():
        sums = session.queue_totals.get(queue.name)
        if sums is not None:
            figures = sums.allocated.copy(), sums.request.copy(), sums.inqueue.copy(), sums.elastic.copy()
            found[queue.name] = _attributes(session, queue, promised, figures)
    return found


def _attributes(
    session: Session, queue: QueueSpec, promised: Vector, figures: tuple[Vector, ...] | None = None
) -> ProportionAttributes:
    """The attributes of a queue. `figures`: allocated, requested, in queue, and elastic; all 0 by default."""
    return ProportionAttributes(
        queue,
        session.dimensions.row(queue.guarantee or {}),
        queue_attributes.real_capability(session, queue, session.total_resources, promised),
        np.zeros_like(session.total_resources),
        *(figures or np.zeros((4, len(session.total_resources)))),
    )


def _divide_by_weight(session: Session, by_queue: list[ProportionAttributes]) -> None:
    """Divide round by round by weight: at most the real capability and the request, at least the guarantee.

    All queues of a round at once: queue by queue, numpy would cost more than all else in most cycles.
    """
    remaining, takers = session.total_resources.copy(), list(by_queue)
    most = np.array([np.minimum(one.real_capability, one.request) for one in takers])
    least, requested = np.array([one.guarantee for one in takers]), np.array([one.request for one in takers])
    old = np.zeros_like(requested)
    while takers and (weights := sum(attributes.queue.weight for attributes in takers)):
        at_start = remaining.copy()
        parts = np.array([attributes.queue.weight / weights for attributes in takers])
        offered = old + at_start * parts[:, np.newaxis]
        deserved = np.maximum(np.minimum(offered, most), least)
        for attributes, row in zip(takers, deserved, strict=True):
            attributes.deserved = row
        _note_round(session, takers, at_start, weights, offered)
        remaining = np.maximum(remaining - (deserved - old).sum(axis=0), 0.0)
        lacks = ~((requested < deserved + EPSILON).all(axis=1) | (deserved == old).all(axis=1))
        left = remaining[session.dimensions.without_pods]
        if not (left > EPSILON).any() or (remaining == at_start).all():
            return
        takers = [attributes for attributes, is_left in zip(takers, lacks.tolist(), strict=True) if is_left]
        old, most, least, requested = deserved[lacks], most[lacks], least[lacks], requested[lacks]


def _note_round(
    session: Session, takers: list[ProportionAttributes], at_start: Vector, weights: int, offered: Vector
) -> None:
    if session.share_notes is None:
        return
    names = [attributes.queue.name for attributes in takers]
    deserved = {attributes.queue.name: attributes.deserved for attributes in takers}
    session.share_notes.add(ShareRound(at_start, weights, dict(zip(names, offered, strict=True)), deserved))
