"""Give admitted gangs their places (`volcano-spec` §4).

A turn places one gang up to its minimum, all or nothing; beyond the minimum each turn places one task, and after each
turn queue and job go back into their order, so that queues and jobs take turns with what is left.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from hekla.domain.phases import GangPhase
from hekla.engine import placing
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.remembered import Remembered
from hekla.engine.session import Session
from hekla.engine.statement import Statement


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Turn by turn, until no queue has a job that can be helped."""
    turns = Turns(session, arguments)
    gangs = _by_queue(session, turns)
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in sorted(gangs)))
    while len(queues):
        queue = queues.pop()
        waiting = gangs[queue.name]
        if not len(waiting):
            continue
        if session.any_says(Point.OVERUSED, queue):
            _note_overused(session, queue, waiting)
            continue
        gang = waiting.pop()
        if turns.take(gang):
            waiting.push(gang)
        queues.push(queue)


def _by_queue(session: Session, turns: "Turns") -> dict[str, Heap[Gang]]:
    """The jobs of each queue. Those without a task that waits are left out, but where the last tie must be Volcano's:
    they too move what is in the heap when shares change.
    """
    admitted_only = "enqueue" in session.policy.actions
    for gang in session.unsettled.values():
        if gang.phase is GangPhase.PENDING and not admitted_only:
            session.admit(gang)
    gangs = session.valid_gangs(admitted_only=admitted_only)
    found: dict[str, Heap[Gang]] = {gang.job.queue: Heap(session.job_before) for gang in gangs}
    if not session.policy.follows_volcano:
        waiting = turns.redeem([gang for gang in gangs if gang.count[TaskStatus.PENDING]])
        gangs = [gang for gang in waiting if not _is_hopeless(session, gang)]
    for gang in gangs:
        found[gang.job.queue].push(gang)
    return found


def _is_hopeless(session: Session, gang: Gang) -> bool:
    """There is no place for a task without which its turn would come to nothing, and there will be none in this action.

    Room only becomes less while places are given, so nothing is lost by not trying; a thousand jobs that wait for the
    same cost one look. What depends on other pods, or was promised a node, gets its turn.
    """
    if gang.is_in_domains:
        return False
    examples = {session.class_of(member): member for member in gang.pending()}
    if len(examples) > 1 and gang.job.min_available < gang.size:
        return False
    lost = next((member for member in examples.values() if _is_lost(session, member)), None)
    if lost is None:
        return False
    failures = _Failures(session, gang)
    failures.nowhere(lost)
    failures.look()
    failures.note(session.queues[gang.job.queue])
    return True


def _is_lost(session: Session, member: Member) -> bool:
    places = session.places(member)
    return not (member.task.nominated_node or places.depends_on_pods) and places.best() is None


class Turns:
    """The turns of all gangs, and the tasks that each has left for its next ones."""

    def __init__(self, session: Session, arguments: Mapping[str, Argument]) -> None:
        self._session, self._arguments = session, arguments
        self._tasks: dict[str, deque[Member]] = {}

    def take(self, gang: Gang) -> bool:
        """One turn. True when the gang may have another."""
        session, queue = self._session, self._session.queues[gang.job.queue]
        if gang.is_in_domains:
            return placing.turn(session, queue, gang)
        if gang.job.uid not in self._tasks:
            self._tasks[gang.job.uid] = deque(session.in_task_order(gang.pending()))
        worksheet = self._tasks[gang.job.uid]
        remembered = Remembered(session, gang, self._arguments)
        return bool(worksheet) and _turn(session, queue, gang, worksheet, remembered) and bool(worksheet)

    def redeem(self, gangs: list[Gang]) -> list[Gang]:
        """Gangs for which others were evicted come before all queues; the gangs that may have turns after that.

        In Volcano whoever was evicted may come again, take the room that was made, and be evicted again, for ever.
        """
        session = self._session
        promised: Heap[Gang] = Heap(session.job_before, filter(self._is_promised, gangs))
        waits: set[str] = set()
        while len(promised):
            gang = promised.pop()
            while self.take(gang) and self._is_promised(gang):
                pass
            if session.is_ready(gang):
                continue
            self._tasks.pop(gang.job.uid, None)
            if session.is_pipelined(gang):
                waits.add(gang.job.uid)
        return [gang for gang in gangs if gang.job.uid not in waits]

    def _is_promised(self, gang: Gang) -> bool:
        nodes = self._session.table.row_of
        return any(m.status is TaskStatus.PENDING and m.task.nominated_node in nodes for m in gang.members)


def _turn(session: Session, queue: Queue, gang: Gang, worksheet: deque[Member], remembered: Remembered) -> bool:
    """One turn of one gang. True when it may have another."""
    statement = Statement(session)
    failures = _Failures(session, gang)
    while worksheet:
        member = worksheet.popleft()
        if not session.all_agree(Point.ALLOCATABLE, queue, member):
            failures.over_share(member)
            continue
        if member.task.role in failures.roles:
            continue
        best = session.best_place(member, remembered.open_rows(member))
        if best is None:
            failures.nowhere(member)
            if failures.are_final():
                break
            continue
        statement.place(member, best[0], now=best[1])
        if session.is_ready(gang):
            break
    failures.look()
    is_ready = session.is_ready(gang)
    if is_ready:
        statement.commit()
    elif not session.is_pipelined(gang):
        statement.discard()
    failures.note(queue)
    return is_ready


class _Failures:
    """What went wrong in a turn, gathered by role."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self._session, self._gang = session, gang
        self.roles: dict[str, Member] = {}
        self._over_share: list[Member] = []
        self._reasons: list[Reason] = []

    def nowhere(self, member: Member) -> None:
        self.roles[member.task.role] = member

    def over_share(self, member: Member) -> None:
        self._over_share.append(member)

    def are_final(self) -> bool:
        """Whether the gang cannot reach its minimum any more in this turn."""
        gang, roles = self._gang, self.roles
        job = gang.job
        if job.min_available >= gang.size:
            return True
        if job.min_available < sum(job.min_task_member.values()):
            left = sum(m.task.role not in roles for m in gang.pending())
            return gang.ready_count + gang.waiting_count + left < job.min_available
        placed = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
        return any(job.min_task_member.get(role, 0) > gang.in_role(role, placed) for role in roles)

    def look(self) -> None:
        """While the turn's places are still held: why other tasks of this gang found none."""
        self._reasons = [self._nowhere_reason(member) for member in self.roles.values()]

    def note(self, queue: Queue) -> None:
        """Once the turn is over: write down why this gang waits, if it does."""
        if self._over_share:
            self._reasons.append(self._share_reason(queue))
        if self._reasons:
            self._session.reasons[self._gang.job.uid] = self._reasons

    def _nowhere_reason(self, member: Member) -> Reason:
        standing = self._session.places(member).standing(self._session.dimensions)
        cause = Cause.CAPACITY if standing.is_allowed else Cause.CONSTRAINT
        gang = self._gang
        missing = gang.job.min_available - gang.ready_count - gang.waiting_count
        starts_alone = missing <= 0 or gang.job.min_available == 1
        return Reason(
            cause=cause if starts_alone or cause is Cause.CONSTRAINT else Cause.GANG,
            action="allocate",
            plugin="predicates" if cause is Cause.CONSTRAINT else "resources",
            code="no_node_fits",
            need=member.task.request,
            have=standing.most,
            tasks=max(missing, sum(m.task.role == member.task.role for m in gang.pending()) if missing <= 0 else 0),
            nodes=standing.nodes,
            ever=standing.ever,
        )

    def _share_reason(self, queue: Queue) -> Reason:
        reason = _why_no_room(self._session, queue, self._wanted())
        return replace(reason, tasks=len(self._over_share))

    def _wanted(self) -> list[Member]:
        """What the gang would need a place for to start, those that were refused first; once it runs, one more."""
        gang, refused = self._gang, self._over_share
        missing = gang.job.min_available - gang.ready_count - gang.waiting_count
        seen = {id(member) for member in refused}
        others = [member for member in gang.pending() if id(member) not in seen]
        return [*refused, *others][: max(missing, 1)]


def _why_no_room(session: Session, queue: Queue, members: list[Member]) -> Reason:
    """What the plugins say stands in the way of these tasks."""
    for answer in session.answers(Point.WHY_NOT_ALLOCATABLE):
        if reason := answer(queue, members):
            return cast(Reason, reason)
    return Reason(Cause.QUOTA, "allocate", "proportion", "queue_share_used", need=members[0].task.request)


def _note_overused(session: Session, queue: Queue, waiting: Heap[Gang]) -> None:
    """The queue has its whole share: all that waits in it waits for that."""
    while len(waiting):
        gang = waiting.pop()
        if pending := gang.pending():
            missing = max(gang.job.min_available - gang.ready_count, 1)
            reason = _why_no_room(session, queue, pending[:missing])
            session.reasons[gang.job.uid] = [replace(reason, code="queue_overused", tasks=len(pending))]
