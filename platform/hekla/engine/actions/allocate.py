"""Give admitted gangs their places (`volcano-spec` §4).

A turn places one gang up to its minimum, all or nothing; beyond the minimum each turn places one task, and after each
turn queue and job go back into their order, so that queues and jobs take turns with what is left.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hekla.domain.phases import GangPhase
from hekla.engine import backlog, placing
from hekla.engine.decisions import Reason
from hekla.engine.explaining import Explanations, why_no_room
from hekla.engine.futility import Futility
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.heap import Heap, Waiting
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
        _take_turns(session, turns, waiting)
        queues.push(queue)


def _take_turns(session: Session, turns: "Turns", waiting: Waiting[Gang]) -> None:
    """The turn of the queue's first gang. Where it changed nothing the queue is still first, and so is its next gang's.

    Only Volcano asks again which queue is first: in its heap of queues the answer may be another.
    """
    table, is_over = session.table, False
    while len(waiting) and not is_over:
        before, gang = len(table.touched), waiting.pop()
        if turns.is_hopeless(gang):
            session.note_alike(gang, waiting.behind())
        elif turns.take(gang):
            waiting.push(gang)
        is_over = session.policy.follows_volcano or len(table.touched) > before


def _by_queue(session: Session, turns: "Turns") -> dict[str, Waiting[Gang]]:
    """The jobs of each queue. Those without a task that waits are left out, but where the last tie must be Volcano's:
    they too move what is in the heap when shares change.
    """
    if "enqueue" not in session.policy.actions:
        _admit_all(session)
    singles, lines = backlog.standing(session)
    gangs = session.valid_gangs(among=singles)
    if not session.policy.follows_volcano:
        waiting = turns.redeem([gang for gang in gangs if gang.pending_count])
        gangs = [gang for gang in waiting if not turns.is_hopeless(gang)]
    return backlog.by_queue(session, gangs, _with_hope(session, turns, lines))


def _admit_all(session: Session) -> None:
    for gang in session.unsettled.values():
        if gang.phase is GangPhase.PENDING and not session.is_kept_out(gang):
            session.admit(gang)


def _with_hope(session: Session, turns: "Turns", lines: list[list[Gang]]) -> Iterator[list[Gang]]:
    """The lines whose first may get a place; why the others do not is noted."""
    for first, line in ((line[0], line) for line in lines):
        if not first.is_admitted:
            continue
        if session.is_valid(first) and not turns.is_hopeless(first):
            yield line
        else:
            session.note_alike(first, line)


class Turns:
    """The turns of all gangs, and the tasks that each has left for its next ones."""

    def __init__(self, session: Session, arguments: Mapping[str, Argument]) -> None:
        self._session, self._arguments = session, arguments
        self._tasks: dict[str, deque[Member]] = {}
        self._explanations = Explanations(session)
        self._futility = Futility(session, self._explanations)

    def is_hopeless(self, gang: Gang) -> bool:
        """It is certain that its first turn would come to nothing; why is noted."""
        if self._session.policy.follows_volcano or gang.job.uid in self._tasks:
            return False
        return self._futility.is_certain(gang)

    def take(self, gang: Gang) -> bool:
        """One turn. True when the gang may have another."""
        session, queue = self._session, self._session.queues[gang.job.queue]
        if gang.is_in_domains:
            return placing.turn(session, queue, gang)
        if gang.job.uid not in self._tasks:
            self._tasks[gang.job.uid] = deque(session.in_task_order(gang.pending()))
        worksheet = self._tasks[gang.job.uid]
        return bool(worksheet) and self._turn(queue, gang, worksheet) and bool(worksheet)

    def _turn(self, queue: Queue, gang: Gang, worksheet: deque[Member]) -> bool:
        """One turn of one gang. True when it may have another."""
        session, failures = self._session, _Failures(gang, self._explanations)
        statement, remembered = Statement(session), Remembered(session, gang, self._arguments)
        while worksheet:
            member = worksheet.popleft()
            if not session.all_agree(Point.ALLOCATABLE, queue, member):
                failures.over_share.append(member)
                continue
            session.looked_at.add(member.task.uid)
            if member.task.role in failures.nowhere:
                continue
            best = session.best_place(member, remembered.open_rows(member))
            if best is None:
                failures.nowhere[member.task.role] = member
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
            self._futility.learn(gang, by_share=bool(failures.over_share))
        failures.note(session)
        return is_ready

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
        if not gang.is_nominated:
            return False
        nodes = self._session.table.row_of
        return any(m.status is TaskStatus.PENDING and m.task.nominated_node in nodes for m in gang.members)


class _Failures:
    """What went wrong in a turn: who found no node, by role, and who is more than the queue may have."""

    def __init__(self, gang: Gang, explanations: Explanations) -> None:
        self._gang, self._explanations = gang, explanations
        self.nowhere: dict[str, Member] = {}
        self.over_share: list[Member] = []
        self._reasons: tuple[Reason, ...] = ()

    def are_final(self) -> bool:
        """Whether the gang cannot reach its minimum any more in this turn."""
        gang, roles = self._gang, self.nowhere
        job = gang.job
        if job.min_available >= gang.size:
            return True
        if job.min_available < sum(job.min_task_member.values()):
            left = sum(m.task.role not in roles for m in gang.pending())
            return gang.ready_count + gang.waiting_count + left < job.min_available
        return any(job.min_task_member.get(role, 0) > gang.in_role(role, ALLOCATED) for role in roles)

    def look(self) -> None:
        """While the turn's places are still held: why other tasks of this gang found none."""
        found = (self._explanations.nowhere(self._gang, member) for member in self.nowhere.values())
        self._reasons = tuple(found)

    def note(self, session: Session) -> None:
        """Once the turn is over: write down why this gang waits, if it does."""
        if self.over_share:
            self._reasons += (self._explanations.over_share(self._gang, self.over_share),)
        if self._reasons:
            session.reasons[self._gang.job.uid] = self._reasons


def _note_overused(session: Session, queue: Queue, waiting: Waiting[Gang]) -> None:
    """The queue has its whole share: all that waits in it waits for that."""
    while len(waiting):
        gang = waiting.pop()
        if pending := gang.pending():
            missing = max(gang.job.min_available - gang.ready_count, 1)
            reason = why_no_room(session, queue, pending[:missing])
            session.reasons[gang.job.uid] = (replace(reason, code="queue_overused", tasks=len(pending)),)
            session.note_alike(gang, waiting.behind())
