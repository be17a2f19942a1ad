"""Starving jobs take places from jobs of their queue, then from less urgent tasks of their own (`volcano-spec` §4).

A job commits its evictions only when they let it reach its minimum. The victims still hold their places; whoever they
went for is promised them, and is bound in a later cycle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

import numpy as np

from hekla.engine import backlog, reprieve, victims
from hekla.engine.aftermath import Aftermath, Search
from hekla.engine.columns import Mask, Vector, fits
from hekla.engine.decisions import Barred, Cause
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.in_vain import InVain
from hekla.engine.model import Queue, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement
from hekla.engine.verdicts import Verdict
from hekla.engine.victims import Grounds

Filter = Callable[[Member, Member], bool]
_EVICTABLE = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
NAME = "preempt"


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Queue by queue: first between its jobs, then inside each of them."""
    starving: dict[str, list[Gang]] = {}
    found = session.valid_gangs()
    for gang in found:
        if session.is_starving(gang) and not gang.has_topology:
            starving.setdefault(gang.job.queue, []).append(gang)
    names = dict.fromkeys(gang.job.queue for gang in found)
    queues: Heap[Queue] = Heap(session.queue_before, (session.queues[name] for name in names))
    while len(queues):
        queue = queues.pop()
        preemption = Preemption(session, queue, arguments)
        gangs = starving.get(queue.name, [])
        preemption.between_jobs(gangs)
        preemption.inside(gangs)
    _explain(session, chain.from_iterable(starving.values()))


def _explain(session: Session, gangs: Iterable[Gang]) -> None:
    """Why no other job of their queue gave way."""
    aftermath, grounds = Aftermath(session, NAME, Cause.PRIORITY, "nobody_preempted"), Grounds(session)
    search = Search(Point.PREEMPTABLE, _is_candidate_of_others, _barred)
    for gang in aftermath.starving(gangs):
        if aftermath.is_told(gang):
            continue
        waiting = [member for member in gang.pending() if not _has_its_room(session, member)]
        aftermath.of_tasks(gang, waiting, partial(search.again, session, grounds))


def _is_candidate_of_others(preemptor: Member, victim: Member) -> bool:
    return _of_other_jobs(preemptor, victim) and _is_candidate(preemptor, victim)


def _barred(preemptor: Member, victim: Member) -> Barred | None:
    is_meant = _of_other_jobs(preemptor, victim) and victim.status in _EVICTABLE
    return Barred.NOT_PREEMPTABLE if is_meant and not victim.task.preemptable else None


def _of_other_jobs(preemptor: Member, victim: Member) -> bool:
    return victim.job is not preemptor.job and victim.job.job.queue == preemptor.job.job.queue


def _of_the_same_job(preemptor: Member, victim: Member) -> bool:
    return victim.job is preemptor.job


class Preemption:
    """What is done for the jobs of one queue."""

    def __init__(self, session: Session, queue: Queue, arguments: Mapping[str, Argument]) -> None:
        self._session, self._queue, self._arguments = session, queue, arguments
        self._grounds: dict[Filter, Grounds] = {may: Grounds(session) for may in (_of_other_jobs, _of_the_same_job)}

    def between_jobs(self, gangs: list[Gang]) -> None:
        """Starving jobs, the first one first, take from the others."""
        session, waiting = self._session, backlog.in_order(self._session, gangs)
        in_vain = InVain(session, Point.PREEMPTABLE)
        while len(waiting):
            in_vain.unless(waiting.pop(), self._from_others)

    def _from_others(self, gang: Gang) -> bool:
        """True: something was committed."""
        session, statement = self._session, Statement(self._session)
        tasks = self._pending(gang)
        while len(tasks) and session.is_starving(gang):
            self._preempt(statement, tasks.pop(), _of_other_jobs)
        is_pipelined = session.is_pipelined(gang)
        if is_pipelined:
            statement.commit()
        else:
            statement.discard()
        return is_pipelined

    def inside(self, gangs: list[Gang]) -> None:
        """Tasks of a job take from its less urgent ones, until one of them finds nothing."""
        in_vain = InVain(self._session, Point.PREEMPTABLE)
        for gang in gangs:
            in_vain.unless(gang, self._from_itself)

    def _from_itself(self, gang: Gang) -> bool:
        """True: something was committed."""
        tasks, is_changed = self._pending(gang), False
        while len(tasks):
            statement = Statement(self._session)
            if not self._preempt(statement, tasks.pop(), _of_the_same_job):
                break
            statement.commit()
            is_changed = True
        return is_changed

    def _pending(self, gang: Gang) -> Heap[Member]:
        return Heap(self._session.task_before, (m for m in gang.members if m.status is TaskStatus.PENDING))

    def _preempt(self, statement: Statement, member: Member, may: Filter) -> bool:
        """Promise the task a node on which evictions make room. False: there is none, and nothing was changed."""
        if member.task.never_preempts or _has_its_room(self._session, member):
            return False
        self._session.looked_at.add(member.task.uid)
        if self._arguments.get("enableTopologyAwarePreemption") is True:
            return self._preempt_the_least(statement, member, may)
        places = self._session.places(member)
        places.catch_up()
        curable, listed = places.curable(), self._session.table.listed
        worth_trying = curable & ~self._grounds[may].barren(member)
        scores = np.where(worth_trying, places.scores(curable), -np.inf)[listed]
        return any(self._preempt_on(statement, member, int(listed[at]), may) for at in _best_first(scores))

    def _preempt_on(self, statement: Statement, member: Member, row: int, may: Filter) -> bool:
        verdict, future = self._victims(member, row, may), self._session.table.future(row)
        if not fits(member.request, future + victims.total(verdict.victims, future)):
            self._grounds[may].note_barren(member, row)
            return False
        order, mark = victims.in_order(self._session, verdict.victims, member.job), len(statement)
        while len(order) and not self._has_room(member, row):
            statement.evict(order.pop(), NAME, member.job.job.uid, verdict.plugins)
        if not self._has_room(member, row):
            statement.discard(mark)
            return False
        self._promise(statement, member, row, is_nominated=len(statement) > mark)
        return True

    def _preempt_the_least(self, statement: Statement, member: Member, may: Filter) -> bool:
        session, found = self._session, []
        curable, listed = self._where_trying_helps(member), session.table.listed
        enough = reprieve.how_many(len(listed), self._arguments)
        for row in listed[curable[listed]].tolist():
            verdict, has_room = self._victims(member, row, may), partial(self._has_room, member, row)
            order = victims.in_order(session, verdict.victims, member.job)
            candidate = reprieve.on_node(statement, row, order, verdict.plugins, has_room) if verdict.victims else None
            found += [candidate] if candidate else []
            if len(found) >= enough:
                break
        if not found:
            return False
        best = min(found, key=lambda candidate: candidate.cost)
        for victim in best.victims:
            statement.evict(victim, NAME, member.job.job.uid, best.plugins)
        self._promise(statement, member, best.row, is_nominated=bool(best.victims))
        return True

    def _where_trying_helps(self, member: Member) -> Mask:
        """Volcano tries evictions out beside the predicates if they are not switched on for it: nothing is cured."""
        places, session = self._session.places(member), self._session
        if not session.policy.follows_volcano or session.any_says(Point.TRIES_EVICTIONS):
            return places.curable()
        places.catch_up()
        return places.allowed

    def _victims(self, member: Member, row: int, may: Filter) -> Verdict:
        here = self._grounds[may].on_node(row)
        candidates = [victim for victim in here if _is_candidate(member, victim) and may(member, victim)]
        return self._session.victims(Point.PREEMPTABLE, member, candidates)

    def _promise(self, statement: Statement, member: Member, row: int, *, is_nominated: bool) -> None:
        if is_nominated:
            self._session.nominated[member.task.uid] = self._session.table.nodes[row].name
        statement.place(member, row, now=False)

    def _has_room(self, member: Member, row: int) -> bool:
        """There is room on this node, once all that was asked to go has gone."""
        if not self._session.all_agree(Point.ALLOCATABLE, self._queue, member):
            return False
        is_allowed = self._session.places(member).allows(row)
        return is_allowed and bool(fits(member.request, self._session.table.future(row)))


def _best_first(scores: Vector) -> Iterator[int]:
    """Where the scores are, the best one first, of equal ones the first. Mostly one is enough: nothing is sorted."""
    while len(scores) and scores[at := int(scores.argmax())] > -np.inf:
        yield at
        scores[at] = -np.inf


def _has_its_room(session: Session, member: Member) -> bool:
    """The node that earlier evictions were for has the room, or will when those are gone: no more are needed.

    Volcano asks only whether the node would take such a task at all, and only of tasks that an action has looked at
    before: those whose room went to another do not evict again.
    """
    row = session.table.row_of.get(member.task.nominated_node)
    if row is None:
        return session.policy.follows_volcano and bool(member.task.nominated_node)
    places = session.places(member)
    leaving = (m for m in session.residents[row].values() if m.status is TaskStatus.RELEASING)
    is_waiting = any(m.task.priority < member.task.priority for m in leaving)
    if session.policy.follows_volcano:
        return is_waiting or (member.task.uid in session.looked_at and places.allows(row))
    return is_waiting or places.room_on(row) is not None


def _is_candidate(preemptor: Member, victim: Member) -> bool:
    if victim.status not in _EVICTABLE or not victim.task.preemptable:
        return False
    return victim.best_effort or not preemptor.best_effort
