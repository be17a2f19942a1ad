"""A large job that has waited long enough gets machines kept for it, so that small ones do not starve it.

A gang is due once it has waited for its places for `after` (10m) since its creation. Of those that are due the one with
the highest priority is elected, then the one that waits longest. Machines that would hold its minimum if they were
empty are kept for it: those with the most room first, so that a choice, once made, stays while they empty. Nobody
else's task is placed there until it starts, and the other jobs of its queue leave it the share that it needs; what runs
there ends in peace. Nothing is kept for a gang that could not start even if nothing else ran, by its size or by its
queue's bounds; the next one is elected instead. One gang at a time.

The election has no memory: each cycle comes to the same while nothing changes, and ends it when the gang has started.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from hekla.engine.columns import EPSILON, Mask, NodeTable, Vector
from hekla.engine.durations import seconds
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.places import Places, Refusal
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.victims import total

_AFTER = 600.0
_CANDIDATES = 32
"""So many are looked at in a cycle; looking at one costs as much as finding places for a new class of tasks."""


def open_session(session: Session, option: PluginOption) -> None:
    """Keep the elected gang's machines from all the others."""
    after = seconds(str(option.arguments.get("after", "")))
    keeper = _Keeper(session, _AFTER if after is None else after)
    session.register(Point.TASK_CLASS, option, keeper.is_due)
    session.register(Point.PREDICATE, option, keeper.refuse)
    session.register(Point.ALLOCATABLE, option, keeper.leaves_share)


@dataclass(frozen=True, slots=True)
class _Election:
    """Who was elected, the machines kept for it, and what its queue must still have for it beyond what ends there."""

    gang: Gang | None
    kept: Mask
    share: Vector


class _Keeper:
    """Who is due, and what is kept; elected when somebody is first asked for a place, when all plugins have spoken."""

    def __init__(self, session: Session, after: float) -> None:
        self._session = session
        due = [gang for gang in session.gangs.values() if _waits(gang, session.now - after)]
        self._due = sorted(due, key=lambda gang: (-gang.job.priority, gang.job.created_at, gang.job.uid))
        self._uids = {gang.job.uid for gang in due}
        self._election: _Election | None = None
        self._is_asking = False

    def is_due(self, member: Member) -> str:
        """Gangs that are due are classes of their own."""
        return member.job.job.uid if member.job.job.uid in self._uids else ""

    def refuse(self, member: Member, _table: NodeTable) -> list[Refusal]:
        election = self._outcome()
        if election is None or election.gang in (None, member.job):
            return []
        return [Refusal(election.kept, "reserved for a job that waits longer")]

    def leaves_share(self, queue: Queue, member: Member) -> bool:
        """Whether the elected job's queue would still have enough for it."""
        election = self._outcome()
        if election is None or election.gang is None or election.gang.is_ready:
            return True
        if election.gang is member.job or election.gang.job.queue != queue.name:
            return True
        return self._may_hold(election.gang, election.share + member.request)

    def _outcome(self) -> _Election | None:
        """None while it is being found out."""
        if self._is_asking:
            return None
        if self._election is None:
            self._election = self._elect()
        return self._election

    def _elect(self) -> _Election:
        found = ((gang, self._rows(gang)) for gang in self._due[:_CANDIDATES])
        gang, rows = next((one for one in found if one[1]), (None, []))
        kept = np.zeros(len(self._session.table), dtype=bool)
        kept[rows] = True
        share = np.zeros_like(self._session.total)
        if gang is not None:
            share = total(_needed(gang), share) - self._held_by(gang.job.queue, rows, share)
        return _Election(gang, kept, share)

    def _rows(self, gang: Gang) -> list[int]:
        """The machines that would do; none if nothing would."""
        members = _needed(gang)
        nothing = np.zeros_like(self._session.total)
        needed = total(members, nothing)
        others = sum((g.allocated for g in self._session.gangs.values() if g.job.queue == gang.job.queue), nothing)
        self._is_asking = True
        try:
            rows = _rows(self._session, members)
        finally:
            self._is_asking = False
        return rows if self._may_hold(gang, needed - others) else []

    def _held_by(self, queue: str, rows: Iterable[int], like: Vector) -> Vector:
        held = (m for row in rows for m in self._session.residents[row].values() if m.status in ALLOCATED)
        return total((m for m in held if m.job.job.queue == queue), like)

    def _may_hold(self, gang: Gang, more: Vector) -> bool:
        """Whether the gang's queue may give out so much more, as if one task asked for it."""
        queue = self._session.queues[gang.job.queue]
        asker = copy(gang.members[0])
        asker.request = np.maximum(more, 0.0)
        self._is_asking = True
        try:
            return self._session.all_agree(Point.ALLOCATABLE, queue, asker)
        finally:
            self._is_asking = False


def _waits(gang: Gang, before: float) -> bool:
    """Let in before that, with fewer places than it needs to start."""
    missing = gang.job.min_available - gang.ready_count
    return gang.is_admitted and missing > 0 and gang.job.created_at <= before and bool(gang.pending())


def _rows(session: Session, members: Sequence[Member]) -> list[int]:
    """The machines that would hold all of them if they were empty; none if that does not suffice."""
    classes = {_class(member): member for member in members}
    places = {key: Places(member, session.table, session.answers) for key, member in classes.items()}
    left = Counter(_class(member) for member in members)
    rows = []
    for row in _roomiest_first(session, members):
        if not +left:
            break
        before = left.total()
        _fill(session.table.allocatable[row].copy(), left, [c for c in classes.items() if places[c[0]].allowed[row]])
        if left.total() < before:
            rows.append(row)
    return [] if +left else rows


def _class(member: Member) -> Hashable:
    return member.shape, member.task.role


def _roomiest_first(session: Session, members: Sequence[Member]) -> list[int]:
    """By the part that is or will be free of what is asked for, then by name."""
    table = session.table
    asked = np.any([member.request > 0 for member in members], axis=0)
    whole = table.allocatable[:, asked]
    free = np.divide(table.future()[:, asked], whole, out=np.zeros_like(whole), where=whole > 0).min(axis=1)
    return [int(row) for row in np.argsort(-free, kind="stable")]


def _fill(room: Vector, left: Counter[Hashable], classes: Sequence[tuple[Hashable, Member]]) -> None:
    """Put as many of those that are left as fit into the room of an empty machine."""
    for key, member in classes:
        asked = member.request > 0
        count = min(int(((room[asked] + EPSILON) // member.request[asked]).min()), left[key])
        room -= count * member.request
        left[key] -= count


def _needed(gang: Gang) -> list[Member]:
    """As many of its waiting tasks as it needs to start: each role's minimum first."""
    waiting = sorted(gang.pending(), key=lambda m: (m.task.role, m.task.uid))
    by_role = Counter({role: -gang.in_role(role, (TaskStatus.RUNNING,)) for role in gang.job.min_task_member})
    first: list[Member] = []
    rest: list[Member] = []
    for member in waiting:
        by_role[member.task.role] += 1
        least = gang.job.min_task_member.get(member.task.role, 0)
        (first if by_role[member.task.role] <= least else rest).append(member)
    missing = gang.job.min_available - gang.ready_count
    return [*first, *rest][: max(missing, 1)]
