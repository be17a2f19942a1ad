"""What all jobs of a namespace, or those of one owner in it, may hold together. It holds under every policy.

    let in      when its least resources fit beside what is held, and what those need that were let in and wait
    has turns   when what it lacks to start fits beside what is held
    a place     when the task itself fits

What is on its way out holds its place until it is gone, and a promise counts as held: so nothing that starts ever
exceeds a bound. Nobody is evicted for one. Without bounds nothing is said, and nothing is counted.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.domain.phases import GangPhase
from hekla.engine.accounts import together
from hekla.engine.columns import EPSILON, Mask, Vector
from hekla.engine.decisions import Cause, Reason
from hekla.engine.explaining import missing_of
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import EACH, Bound, Queue, TaskStatus
from hekla.engine.points import Point, Vote
from hekla.engine.session import Session, infinite_where_absent

_AS_BEFORE = frozenset({TaskStatus.RELEASING, TaskStatus.RUNNING})
"""Where a task stands that was evicted, or whose eviction was taken back: its place is held as before."""
_BESIDES = frozenset({TaskStatus.RELEASING, TaskStatus.PIPELINED})
"""Those that hold something and that a gang does not count as allocated."""


@dataclass(eq=False)
class Account:
    """A bound and who counts for it: `held` now, and `claimed` with what was let in and waits for its places."""

    bound: Bound
    most: Vector
    held: Vector
    claimed: Vector


def open_session(session: Session) -> None:
    """Let the bounds that there are be heard."""
    if not session.state.bounds:
        return
    keeper = Keeper(session)
    session.bound_by = keeper.accounts
    session.on_change.append(keeper.hear)
    session.always(Point.JOB_ENQUEUEABLE, keeper.enqueueable)
    session.always(Point.JOB_ENQUEUED, keeper.enqueued)
    session.always(Point.JOB_VALID, keeper.why_no_turn)
    session.always(Point.ALLOCATABLE, keeper.allocatable)
    session.always(Point.WHY_NOT_ALLOCATABLE, keeper.why_not)
    session.always(Point.PREEMPTIVE, keeper.preemptive)


class Keeper:
    """The accounts of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._bounds: dict[str, list[Bound]] = defaultdict(list)
        for bound in session.state.bounds:
            self._bounds[bound.namespace].append(bound)
        self._of: dict[tuple[str, str], tuple[Account, ...]] = {}
        self._whole: dict[Bound | tuple[str, str], Account] = {}
        for gang in session.world.everybody:
            self._count(gang)

    def accounts(self, gang: Gang) -> tuple[Account, ...]:
        """Those for which it counts: mostly none, its namespace's, and its owner's own or that of each."""
        job = gang.job
        if job.namespace not in self._bounds:
            return ()
        key = job.namespace, job.owner
        if key not in self._of:
            self._of[key] = tuple(self._open(*key))
        return self._of[key]

    def _open(self, namespace: str, owner: str) -> Iterator[Account]:
        bounds = {bound.owner: bound for bound in self._bounds[namespace]}
        own: Bound | None = bounds.get(owner, bounds.get(EACH)) if owner else None
        for bound, whose in ((bounds.get(""), ""), (own, owner)):
            if bound is not None:
                yield self._account(bound, (namespace, whose))

    def _account(self, bound: Bound, key: tuple[str, str]) -> Account:
        if key not in self._whole:
            nothing = np.zeros_like(self._session.total)
            most = infinite_where_absent(self._session, bound.most)
            self._whole[key] = Account(bound, most, nothing, nothing.copy())
        return self._whole[key]

    def _count(self, gang: Gang) -> None:
        if not (accounts := self.accounts(gang)):
            return
        held = gang.allocated
        if any(gang.count.get(status) for status in _BESIDES):
            held = held + together(self._session, (m for m in gang.members if m.status in _BESIDES))
        claimed = np.maximum(held, _least(gang)) if gang.phase is GangPhase.INQUEUE else held
        for account in accounts:
            account.held += held
            account.claimed += claimed

    def hear(self, member: Member, _row: int, sign: int) -> None:
        """A place was taken, or given back."""
        if member.status not in _AS_BEFORE:
            for account in self.accounts(member.job):
                account.held += sign * member.request

    # What is asked.

    def enqueueable(self, gang: Gang) -> Vote:
        """Its least resources fit beside what is claimed; if not, why is noted."""
        need = _least(gang)
        for account in self.accounts(gang):
            if _short(account, account.claimed, need).any():
                reason = self._refusal(account, "enqueue", account.claimed, need)
                self._session.reasons[gang.job.uid] += (reason,)
                return Vote.REJECT
        return Vote.ABSTAIN

    def enqueued(self, gang: Gang) -> None:
        """It was let in."""
        for account in self.accounts(gang):
            account.claimed += _least(gang)

    def why_no_turn(self, gang: Gang) -> Reason | None:
        """What it lacks to start, or for one task more, does not fit."""
        return self._why_not(gang, _lacking(gang)) if self.accounts(gang) and gang.pending_count else None

    def allocatable(self, _queue: Queue, member: Member) -> bool:
        """There is room for one task more."""
        return not any(_short(one, one.held, member.request).any() for one in self.accounts(member.job))

    def why_not(self, _queue: Queue, members: Sequence[Member]) -> Reason | None:
        """What stands in the way of all these tasks, if it is a bound."""
        return self._why_not(members[0].job, together(self._session, members))

    def preemptive(self, queue: Queue, members: Sequence[Member]) -> bool:
        """Whether it makes sense to take from others for these."""
        return all(self.allocatable(queue, member) for member in members[:1])

    def _why_not(self, gang: Gang, need: Vector) -> Reason | None:
        for account in self.accounts(gang):
            if _short(account, account.held, need).any():
                return self._refusal(account, "allocate", account.held, need)
        return None

    def _refusal(self, account: Account, action: str, used: Vector, need: Vector) -> Reason:
        """In the amounts that are short alone."""
        short, resources = _short(account, used, need), self._session.dimensions.resources
        return Reason(
            cause=Cause.QUOTA,
            action=action,
            plugin="quota",
            code="member_quota" if account.bound.owner else "tenant_quota",
            need=resources(np.where(short, need, 0.0)),
            have=resources(np.where(short, account.most - used, 0.0)),
            most=resources(np.where(short, account.most, 0.0)),
            used=resources(np.where(short, used, 0.0)),
            ever=not (short & (need > account.most + EPSILON)).any(),
        )


def _short(account: Account, used: Vector, need: Vector) -> Mask:
    """Where there is no room; what is not asked for may be over its bound already."""
    short: Mask = (need > 0) & (used + need > account.most + EPSILON)
    return short


def _least(gang: Gang) -> Vector:
    """What it said that it needs to start."""
    return np.zeros_like(gang.allocated) if gang.minimum is None else gang.minimum


def _lacking(gang: Gang) -> Vector:
    """The least that it must get to start, or to have one task more: of tasks that differ, as if all were the least."""
    pending = gang.pending()
    requests = np.array([member.request for member in pending]).reshape(len(pending), -1)
    missing = max(missing_of(gang), 1)
    whole: Vector = requests.sum(axis=0)
    return whole if missing >= len(pending) else requests.min(axis=0) * missing
