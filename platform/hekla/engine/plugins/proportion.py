"""Queues share by weight: what each deserves, who is below it, and who has room (`volcano-spec` §5.2)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hekla.engine import accounts
from hekla.engine.columns import EPSILON, Vector, fits, share
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

Evictable = Callable[[Gang, Sequence[Member], str], list[Member] | None]


class Account(accounts.Account):
    """A queue's figures and its share."""

    @property
    def share(self) -> float:
        return share(self.allocated, self.deserved)


def open_session(session: Session, option: PluginOption) -> None:
    """Divide the cluster among the queues that have jobs, and speak for the division."""
    books = _accounts(session)
    _divide(session, list(books.values()))

    def order(left: Queue, right: Queue) -> int:
        if left.priority != right.priority:
            return right.priority - left.priority
        mine, other = _share_of(books, left), _share_of(books, right)
        return (mine > other) - (mine < other)

    def overused(queue: Queue) -> bool:
        account = books[queue.name]
        return bool((account.deserved < account.allocated + EPSILON).all())

    def allocatable(queue: Queue, member: Member) -> bool:
        return preemptive(queue, [member])

    def why_not(queue: Queue, members: Sequence[Member]) -> Reason:
        account, need = books[queue.name], accounts.together(session, members)
        room = account.deserved - account.allocated
        reason = accounts.refusal(session, "proportion", "allocate", account, need, room)
        return replace(reason, cause=Cause.QUOTA, code="queue_share_used") if queue.is_open else reason

    def enqueueable(gang: Gang) -> Vote:
        account = books[gang.job.queue]
        least = gang.minimum if gang.minimum is not None else np.zeros_like(account.real)
        room = account.admits
        if account.queue.is_open and not accounts.exceeds(session, least, room).any():
            return Vote.PERMIT
        reason = accounts.refusal(session, "proportion", "enqueue", account, least, room)
        session.reasons[gang.job.uid] += (reason,)
        return Vote.REJECT

    def enqueued(gang: Gang) -> None:
        if gang.minimum is not None:
            books[gang.job.queue].inqueue += gang.minimum

    def follow(member: Member, _row: int, sign: int) -> None:
        books[member.job.job.queue].allocated += sign * member.request

    def preemptive(queue: Queue, members: Sequence[Member]) -> bool:
        wanted = accounts.together(session, members)
        account, asked = books[queue.name], (wanted > 0) & session.dimensions.without_pods
        return queue.is_open and not (account.allocated + wanted > account.deserved)[asked].any()

    def reclaimable(_for: Member | Gang, candidates: Sequence[Member]) -> list[Member]:
        left: dict[str, Vector] = {}
        chosen = []
        for victim in candidates:
            account = books[victim.job.job.queue]
            held = left.setdefault(account.queue.name, account.allocated.copy())
            if not fits(held, account.deserved):
                held -= victim.request
                chosen.append(victim)
        return chosen

    def account_of(queue: Queue) -> Account:
        return books.get(queue.name) or _account(session, queue, accounts.guarantees(session))

    session.on_change.append(follow)
    session.register(Point.PREEMPTIVE, option, preemptive, is_lasting=True)
    session.register(Point.RECLAIMABLE, option, reclaimable, is_lasting=True)
    if not session.policy.follows_volcano:
        session.register(Point.EVICTABLE, option, _only_for_reclaim(reclaimable), is_lasting=True)
    session.register(Point.QUEUE_ORDER, option, order)
    session.register(Point.QUEUE_SHARE, option, partial(_share_with, session, books))
    session.register(Point.QUEUE_ACCOUNT, option, account_of)
    session.register(Point.OVERUSED, option, overused)
    session.register(Point.ALLOCATABLE, option, allocatable, is_lasting=True)
    session.register(Point.WHY_NOT_ALLOCATABLE, option, why_not)
    session.register(Point.JOB_ENQUEUEABLE, option, enqueueable, is_lasting=True)
    session.register(Point.JOB_ENQUEUED, option, enqueued)


def _only_for_reclaim(reclaimable: Callable[[Gang, Sequence[Member]], list[Member]]) -> Evictable:
    """Between queues nobody is pushed below what its queue deserves; Volcano lets whole gangs do that."""
    return lambda gang, candidates, action: reclaimable(gang, candidates) if action == "gangreclaim" else None


def _share_of(books: dict[str, Account], queue: Queue) -> float:
    return books[queue.name].share if queue.name in books else 0.0


def _share_with(
    session: Session, books: dict[str, Account], queue: Queue, more: Sequence[Member], less: Sequence[Member]
) -> float:
    account = books[queue.name]
    held = account.allocated + accounts.together(session, more) - accounts.together(session, less)
    return share(held, account.deserved)


def _accounts(session: Session) -> dict[str, Account]:
    promised, found = accounts.guarantees(session), {}
    for queue in session.queues.values():
        if queue.name in session.sums:
            found[queue.name] = _account(session, queue, promised)
            accounts.count([found[queue.name]], session.sums[queue.name])
    return found


def _account(session: Session, queue: Queue, promised: Vector) -> Account:
    deserved, *figures = (np.zeros_like(session.total) for _ in range(5))
    own = session.dimensions.vector(queue.guarantee or {})
    return Account(queue, own, accounts.bound_of(session, queue, session.total, promised), deserved, *figures)


def _divide(session: Session, books: list[Account]) -> None:
    """Round by round by weight, capped by what each may hold and asks for, never below its guarantee."""
    remaining, unmet = session.total.copy(), list(books)
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
