"""A large job that has waited long enough gets machines kept for it, so that small ones do not starve it.

A gang is due once it has waited for its places for `after` (10m) since its creation. Of those that are due the one with
the highest priority is elected, then the one that waits longest. Machines that would hold its minimum if they were
empty are kept for it: those with the most room first, so that a choice, once made, stays while they empty. Nobody
else's task is placed there until it starts; what runs there ends in peace. No machine is kept for a gang that could not
start even then, or whose queue has no share left; the next one is elected instead. One gang at a time.

The election has no memory: each cycle comes to the same while nothing changes, and ends it when the gang has started.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from hekla.engine.columns import EPSILON, Mask, NodeTable, Vector
from hekla.engine.durations import seconds
from hekla.engine.gangs import Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.places import Places, Refusal
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_AFTER = 600.0


def open_session(session: Session, option: PluginOption) -> None:
    """Keep the elected gang's machines from all the others."""
    after = seconds(str(option.arguments.get("after", "")))
    keeper = _Keeper(session, _AFTER if after is None else after)
    session.register(Point.TASK_CLASS, option, keeper.is_due)
    session.register(Point.PREDICATE, option, keeper.refuse)


class _Keeper:
    """Who is due, and what is kept; elected when somebody is first asked for a place, when all plugins have spoken."""

    def __init__(self, session: Session, after: float) -> None:
        self._session = session
        due = [gang for gang in session.gangs.values() if _waits(gang, session.now - after)]
        self._due = sorted(due, key=lambda gang: (-gang.job.priority, gang.job.created_at, gang.job.uid))
        self._uids = {gang.job.uid for gang in due}
        self._kept: tuple[str, Mask] | None = None
        self._electing = False

    def is_due(self, member: Member) -> str:
        """Gangs that are due are classes of their own."""
        return member.job.job.uid if member.job.job.uid in self._uids else ""

    def refuse(self, member: Member, table: NodeTable) -> list[Refusal]:
        if self._electing:
            return []
        if self._kept is None:
            self._kept = self._elect(table)
        elected, kept = self._kept
        return [] if member.job.job.uid == elected else [Refusal(kept, "reserved for a job that waits longer")]

    def _elect(self, table: NodeTable) -> tuple[str, Mask]:
        self._electing = True
        found = ((gang.job.uid, _rows(self._session, gang)) for gang in self._due)
        elected, rows = next((one for one in found if one[1]), ("", []))
        self._electing = False
        kept = np.zeros(len(table), dtype=bool)
        kept[rows] = True
        return elected, kept


def _waits(gang: Gang, before: float) -> bool:
    """Let in before that, with fewer places than it needs to start."""
    missing = gang.job.min_available - gang.ready_count
    return gang.is_admitted and missing > 0 and gang.job.created_at <= before and bool(gang.pending())


def _rows(session: Session, gang: Gang) -> list[int]:
    """The machines that would do; none if nothing would."""
    members = _needed(gang)
    if not _has_share(session, gang, members):
        return []
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


def _has_share(session: Session, gang: Gang, members: Sequence[Member]) -> bool:
    """Whether the queue may give out as much as all of them ask for, as if one task asked for it."""
    queue = session.queues[gang.job.queue]
    whole = Member(members[0].task, gang, np.sum([member.request for member in members], axis=0), best_effort=False)
    return not session.any_says(Point.OVERUSED, queue) and session.all_agree(Point.ALLOCATABLE, queue, whole)


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
    by_role = Counter({role: -gang.by_role[role, TaskStatus.RUNNING] for role in gang.job.min_task_member})
    first: list[Member] = []
    rest: list[Member] = []
    for member in waiting:
        by_role[member.task.role] += 1
        least = gang.job.min_task_member.get(member.task.role, 0)
        (first if by_role[member.task.role] <= least else rest).append(member)
    missing = gang.job.min_available - gang.ready_count
    return [*first, *rest][: max(missing, 1)]
