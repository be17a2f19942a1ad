"""Shares of queues at the start of a cycle: allocated, deserved, borrowed, and the waiting jobs in order.

    shares = {}
    cycle(state, policy, now, on_open=lambda session: shares.update(queue_shares(session)))

The figures are those of the plugin that divides the cluster (`ExtensionPoint.QUEUE_ACCOUNT`); the order of jobs is the
one that actions use.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import job_queues
from hekla.engine.columns import Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.fair_order import FairShares
from hekla.engine.job_info import JobInfo
from hekla.engine.model import QueueSpec
from hekla.engine.priority_queue import PriorityQueue
from hekla.engine.queue_attributes import QueueAttributes
from hekla.engine.session import Session


@dataclass(frozen=True, slots=True)
class QueueShares:
    """The shares of one queue.

    `pending`: what its waiting jobs lack (the minimum, if not admitted). `limit`: the most it may hold; 0 where
    unlimited. `borrowed`: allocated beyond deserved. `lent`: deserved, unused, and borrowed by others. `share`:
    allocated / deserved. `plugin`: the one that divides the cluster; empty if none. `ancestors`: its parent queues.
    `waiting_jobs`: uids in job order. `unlimited`: the resources without a limit.
    """

    allocated: Resources
    pending: Resources
    guarantee: Resources
    deserved: Resources
    limit: Resources
    borrowed: Resources
    lent: Resources
    share: float
    plugin: str
    ancestors: tuple[str, ...]
    waiting_jobs: tuple[str, ...]
    unlimited: frozenset[str] = frozenset()

    def most(self, resource: str) -> float:
        """The most that the queue may hold of a resource; infinite without a limit."""
        return math.inf if resource in self.unlimited else self.limit.amount(resource)


def queue_shares(session: Session, *, waiting_in: str | None = None) -> dict[str, QueueShares]:
    """The shares of every valid queue by name. `waiting_in`: list waiting jobs of this queue only; None: of all."""
    waiting = _waiting_jobs(session, waiting_in)
    found = {name: _queue_shares(session, queue, waiting.get(name, [])) for name, queue in session.queues.items()}
    loans = _Loans({name: (one.borrowed, one.ancestors) for name, one in found.items()})
    return {name: replace(one, lent=loans.lent(name, one)) for name, one in found.items()}


def shares_of(session: Session, name: str) -> QueueShares | None:
    """The shares of one queue, as `queue_shares` has them; None if it is not valid. Of the others, only what they
    borrow is computed.
    """
    queue = session.queues.get(name)
    if queue is None:
        return None
    found = _queue_shares(session, queue, _waiting_jobs(session, name).get(name, []))
    return replace(found, lent=_Loans(_borrowed_by(session)).lent(name, found))


def _borrowed_by(session: Session) -> dict[str, tuple[Resources, tuple[str, ...]]]:
    """For each queue: what it borrows, and its parent queues."""
    found = {}
    for name, queue in session.queues.items():
        plugin, attributes = attributes_of(session, queue)
        found[name] = _borrowed(session, plugin, attributes), attributes.ancestors
    return found


def _borrowed(session: Session, plugin: str, attributes: QueueAttributes) -> Resources:
    excess = attributes.allocated - attributes.deserved
    return session.dimensions.resources(excess) if plugin else Resources()


def waiting_in(session: Session, queue: str) -> list[str]:
    """The uids of the waiting jobs of one queue, in job order."""
    return [job.group.uid for job in _waiting_jobs(session, queue).get(queue, ())]


def pending_amounts(session: Session) -> dict[str, Resources]:
    """What the waiting jobs of each queue lack, as `QueueShares.pending`, but without the order of the jobs.

    Equal jobs lack the same, so their stand-ins are counted: a million jobs have a few.
    """
    found: dict[str, Vector] = {}
    for job, count in Counter(session.unsettled_jobs.stand_ins()).items():
        if _waits(job):
            queue, missing = job.group.queue, np.maximum(_missing(job), 0.0) * count
            found[queue] = found[queue] + missing if queue in found else missing
    return {name: session.dimensions.resources(row) for name, row in found.items()}


def _queue_shares(session: Session, queue: QueueSpec, waiting: list[JobInfo]) -> QueueShares:
    plugin, attributes = attributes_of(session, queue)
    amounts = session.dimensions.resources
    share_of = next(iter(session.functions(ExtensionPoint.QUEUE_SHARE)), None)
    return QueueShares(
        allocated=amounts(attributes.allocated),
        pending=amounts(sum(map(_missing, waiting), np.zeros_like(session.total_resources))),
        guarantee=amounts(attributes.guarantee),
        deserved=amounts(attributes.deserved),
        limit=amounts(np.where(np.isfinite(attributes.real_capability), attributes.real_capability, 0.0)),
        borrowed=_borrowed(session, plugin, attributes),
        lent=Resources(),
        share=float(share_of(queue, (), ())) if share_of and queue.name in session.queue_totals else 0.0,
        plugin=plugin,
        ancestors=attributes.ancestors,
        waiting_jobs=tuple(job.group.uid for job in waiting),
        unlimited=frozenset(compress(session.dimensions.names, np.isinf(attributes.real_capability).tolist())),
    )


def attributes_of(session: Session, queue: QueueSpec) -> tuple[str, QueueAttributes]:
    """The first registered plugin and its attributes of the queue; without one, only what it holds and requests."""
    for tier in session.named_functions(ExtensionPoint.QUEUE_ACCOUNT):
        for plugin, function in tier:
            return plugin, function(queue)
    nothing: Vector = np.zeros_like(session.total_resources)
    sums = session.queue_totals.get(queue.name)
    held, requested = (sums.allocated, sums.request) if sums else (nothing, nothing)
    return "", QueueAttributes(queue, nothing, session.total_resources, nothing, held, requested, nothing, nothing)


class _Loans:
    """What queues borrow. `of`: of each by name, what it borrows, and its parent queues."""

    def __init__(self, of: Mapping[str, tuple[Resources, tuple[str, ...]]]) -> None:
        inner = {above for _borrowed, ancestors in of.values() for above in ancestors}
        self._borrowers = {name: borrowed for name, (borrowed, _) in of.items() if borrowed and name not in inner}
        self._within: dict[str, set[str]] = {}
        for name in self._borrowers:
            for above in (name, *of[name][1]):
                self._within.setdefault(above, set()).add(name)
        self._whole = self._together(())

    def lent(self, name: str, shares: QueueShares) -> Resources:
        """The unused part of what the queue deserves, as far as queues outside it borrow."""
        left = {one: n for one, n in (shares.deserved - shares.allocated).items() if n > 0}
        borrowed = self._together(self._within[name]) if left and name in self._within else self._whole
        return Resources({one: min(n, borrowed.get(one, 0.0)) for one, n in left.items()})

    def _together(self, without: Collection[str]) -> dict[str, float]:
        """What all of them borrow together, without some."""
        found: dict[str, float] = defaultdict(float)
        for name, borrowed in self._borrowers.items():
            for resource, amount in borrowed.items() if name not in without else ():
                found[resource] += amount
        return found


def _waiting_jobs(session: Session, only: str | None) -> dict[str, list[JobInfo]]:
    if only is not None and only not in session.queues:
        return {}
    jobs = session.unsettled_jobs
    of_queue = zip(jobs.uids, jobs.stand_ins(), strict=True)  # equal jobs are in one queue
    requested = (jobs[uid] for uid, one in of_queue if only in (None, one.group.queue))
    shares = session.job_orders.fair_shares.copy() if session.job_orders.fair_shares else None
    waiting = job_queues.queues_by_name(session, filter(_waits, requested), fair_shares=shares)
    return {name: list(_popped(jobs, shares)) for name, jobs in waiting.items()}


def _popped(waiting: PriorityQueue[JobInfo], shares: FairShares | None) -> Iterator[JobInfo]:
    """The jobs in order. In a fair queue each counts for its owner as if it had started before the next."""
    while len(waiting):
        job = waiting.pop()
        if shares is not None:
            shares.add(job, _missing(job))
        yield job


def _waits(job: JobInfo) -> bool:
    return job.phase is GangPhase.PENDING or job.pending_count > 0


def _missing(job: JobInfo) -> Vector:
    wanted = job.request if job.min_resources is None else np.maximum(job.request, job.min_resources)
    return wanted - job.allocated
