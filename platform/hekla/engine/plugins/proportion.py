"""Queues share by weight: what each deserves, who is below it, and who has room (`volcano-spec` §5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.engine.columns import EPSILON, Mask, Vector, fits, share
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session, infinite_where_absent


@dataclass
class Account:
    """A queue's figures. `real`: what it may hold at most. Rows over the session's dimensions."""

    queue: Queue
    allocated: Vector
    request: Vector
    inqueue: Vector
    elastic: Vector
    guarantee: Vector
    real: Vector
    deserved: Vector

    @property
    def share(self) -> float:
        return share(self.allocated, self.deserved)


def open_session(session: Session, option: PluginOption) -> None:
    """Divide the cluster among the queues that have jobs, and speak for the division."""
    accounts = _accounts(session)
    _divide(session, list(accounts.values()))
    countable = session.dimensions.without_pods

    def order(left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return right.priority - left.priority
        mine, other = _share_of(accounts, left), _share_of(accounts, right)
        return (mine > other) - (mine < other)

    def overused(queue: Queue) -> bool:
        account = accounts[queue.name]
        return bool((account.deserved < account.allocated + EPSILON).all())

    def allocatable(queue: Queue, member: Member) -> bool:
        return preemptive(queue, [member])

    def enqueueable(gang: Gang) -> Vote:
        account = accounts[gang.job.queue]
        least = gang.minimum if gang.minimum is not None else np.zeros_like(account.real)
        asked = (least > 0) & countable
        wanted = least + account.allocated + account.inqueue - account.elastic
        if account.queue.is_open and not (wanted > account.real)[asked].any():
            return Vote.PERMIT
        session.reasons[gang.job.uid].append(_refusal(session, account, least))
        return Vote.REJECT

    def enqueued(gang: Gang) -> None:
        if gang.minimum is not None:
            accounts[gang.job.queue].inqueue += gang.minimum

    def follow(member: Member, _row: int, sign: int) -> None:
        accounts[member.job.job.queue].allocated += sign * member.request

    def preemptive(queue: Queue, members: Sequence[Member]) -> bool:
        wanted = sum((member.request for member in members), np.zeros_like(session.total))
        account, asked = accounts[queue.name], (wanted > 0) & countable
        return queue.is_open and not (account.allocated + wanted > account.deserved)[asked].any()

    def reclaimable(_member: Member, candidates: Sequence[Member]) -> list[Member]:
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            account = accounts[victim.job.job.queue]
            held = left.setdefault(account.queue.name, account.allocated.copy())
            if not fits(held, account.deserved):
                held -= victim.request
                chosen.append(victim)
        return chosen

    session.on_change.append(follow)
    session.register(Point.PREEMPTIVE, option, preemptive)
    session.register(Point.RECLAIMABLE, option, reclaimable)
    session.register(Point.QUEUE_ORDER, option, order)
    session.register(Point.OVERUSED, option, overused)
    session.register(Point.ALLOCATABLE, option, allocatable)
    session.register(Point.JOB_ENQUEUEABLE, option, enqueueable)
    session.register(Point.JOB_ENQUEUED, option, enqueued)


def _share_of(accounts: dict[str, Account], queue: Queue) -> float:
    return accounts[queue.name].share if queue.name in accounts else 0.0


def _accounts(session: Session) -> dict[str, Account]:
    guarantees = {q.name: session.dimensions.vector(q.guarantee or {}) for q in session.queues.values()}
    promised = sum(guarantees.values(), np.zeros_like(session.total))
    accounts: dict[str, Account] = {}
    for gang in session.gangs.values():
        queue = session.queues[gang.job.queue]
        if queue.name not in accounts:
            accounts[queue.name] = _account(session, queue, guarantees[queue.name], promised)
        _count(accounts[queue.name], gang)
    return accounts


def _account(session: Session, queue: Queue, guarantee: Vector, promised: Vector) -> Account:
    zero = np.zeros_like(session.total)
    rest = np.maximum(session.total - promised, 0.0) + guarantee
    real = np.minimum(rest, infinite_where_absent(session, queue.capability))
    return Account(queue, zero.copy(), zero.copy(), zero.copy(), zero.copy(), guarantee, real, zero.copy())


def _count(account: Account, gang: Gang) -> None:
    account.allocated += gang.allocated
    account.request += gang.allocated
    for member in gang.members:
        if member.status is TaskStatus.PENDING:
            account.request += member.request
    least = gang.minimum if gang.minimum is not None else np.zeros_like(account.real)
    account.elastic += np.maximum(gang.allocated - least, 0.0)
    placed = gang.ready_count >= gang.job.min_available
    if gang.phase is GangPhase.INQUEUE or (gang.phase is GangPhase.RUNNING and placed):
        account.inqueue += np.maximum(least - gang.allocated, 0.0)


def _divide(session: Session, accounts: list[Account]) -> None:
    """Round by round by weight, capped by what each may hold and asks for, never below its guarantee."""
    remaining, unmet = session.total.copy(), list(accounts)
    while unmet and (weights := sum(account.queue.weight for account in unmet)):
        at_start, moved = remaining.copy(), np.zeros_like(remaining)
        for account in list(unmet):
            old = account.deserved.copy()
            fresh = old + at_start * (account.queue.weight / weights)
            fresh = np.minimum(np.minimum(fresh, account.real), account.request)
            account.deserved = np.maximum(fresh, account.guarantee)
            moved += account.deserved - old
            if (account.request < account.deserved + EPSILON).all() or (account.deserved == old).all():
                unmet.remove(account)
        remaining = np.maximum(remaining - moved, 0.0)
        left = remaining[session.dimensions.without_pods]
        if not (left > EPSILON).any() or (remaining == at_start).all():
            return


def _refusal(session: Session, account: Account, least: Vector) -> Reason:
    left = account.real - account.allocated - account.inqueue + account.elastic
    cause, code = _why_full(session, account, (least > left) & session.dimensions.without_pods)
    return Reason(
        cause=cause,
        action="enqueue",
        plugin="proportion",
        code=code,
        need=session.dimensions.resources(least),
        have=session.dimensions.resources(np.where(least > 0, np.maximum(left, 0.0), 0.0)),
        ever=bool((least < account.real + EPSILON)[session.dimensions.without_pods].all()),
    )


def _why_full(session: Session, account: Account, short: Mask) -> tuple[Cause, str]:
    """Whose bound it is that the `short` resources meet: the queue's own, or only the cluster's."""
    if not account.queue.is_open:
        return Cause.QUOTA, "queue_closed"
    if (account.real < session.total)[short].any():
        return Cause.QUOTA, "queue_is_full"
    return Cause.CAPACITY, "cluster_is_full"
