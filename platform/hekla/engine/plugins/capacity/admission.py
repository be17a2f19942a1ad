"""Whether a queue has room: for a job that wants in, and for a task that wants a place."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hekla.engine import accounts
from hekla.engine.columns import Vector
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import Queue
from hekla.engine.plugins.capacity.books import HAS_CHILDREN, Account, Books
from hekla.engine.plugins.capacity.devices import Demand
from hekla.engine.points import Vote
from hekla.engine.session import Session

Room = Callable[[Account], Vector]


class Admission:
    """A queue may borrow beyond what it deserves, as far as its own bound and each bound above it reach."""

    def __init__(self, session: Session, books: Books, demand: Demand) -> None:
        self._session, self._books, self._demand = session, books, demand
        self._countable = session.dimensions.without_pods

    def allocatable(self, queue: Queue, member: Member) -> bool:
        """Whether the queue may take one more task."""
        account, request = self._books[queue.name], self._demand.of(member)
        if account.problem or account.is_inner or not queue.is_open:
            return False
        asked = (request > 0) & self._countable
        return not any((bound.allocated + request > bound.real)[asked].any() for bound in account.line)

    def enqueueable(self, gang: Gang) -> Vote:
        """Whether its least resources fit beside what is there and what was let in before."""
        account = self._books[gang.job.queue]
        least = gang.minimum if gang.minimum is not None else np.zeros_like(account.real)
        reason = self._why_not(account, "enqueue", least, lambda bound: bound.admits)
        if reason is None:
            return Vote.PERMIT
        self._session.reasons[gang.job.uid] += (reason,)
        return Vote.REJECT

    def enqueued(self, gang: Gang) -> None:
        """The job was let in."""
        if gang.minimum is not None:
            for account in self._books[gang.job.queue].line:
                account.inqueue += gang.minimum

    def why_not_allocatable(self, queue: Queue, members: Sequence[Member]) -> Reason | None:
        """What stands in the way of all these tasks."""
        need = sum((self._demand.of(member) for member in members), np.zeros_like(self._session.total))
        return self._why_not(self._books[queue.name], "allocate", need, lambda bound: bound.real - bound.allocated)

    def _why_not(self, account: Account, action: str, need: Vector, room_in: Room) -> Reason | None:
        """The first bound that is met on the way up; None where there is room in all of them."""
        if problem := account.problem or (HAS_CHILDREN if account.is_inner else ""):
            amount = self._session.dimensions.resources(need)
            return Reason(Cause.QUOTA, action, "capacity", problem, amount, ever=False)
        for bound in account.line:
            room = room_in(bound)
            is_shut = bound is account and not bound.queue.is_open
            if is_shut or accounts.exceeds(self._session, need, room).any():
                return self._refusal(account, bound, action, need, room)
        return None

    def _refusal(self, account: Account, bound: Account, action: str, need: Vector, room: Vector) -> Reason:
        reason = accounts.refusal(self._session, "capacity", action, bound, need, room)
        if bound is not account and reason.code == "queue_is_full":
            return replace(reason, code="parent_queue_is_full")
        return reason
