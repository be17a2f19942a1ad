"""Who may have to go from a node, and in what order (`volcano-spec` §3.2, §4)."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from hekla.engine.columns import Vector
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.points import Point
from hekla.engine.session import Session


class Grounds:
    """Where victims are looked for: who is on each node, and where looking again is of no use."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._here: dict[int, tuple[int, list[Member]]] = {}
        self._barren: dict[tuple[str, Hashable], tuple[int, dict[int, int]]] = {}

    def on_node(self, row: int) -> list[Member]:
        """The tasks of known jobs on a node, by uid."""
        changes = self._session.table.changes[row]
        if row not in self._here or self._here[row][0] != changes:
            residents, known = self._session.residents[row], self._session.gangs
            here = [residents[uid] for uid in sorted(residents) if residents[uid].job.job.uid in known]
            self._here[row] = changes, here
        return self._here[row][1]

    def is_barren(self, member: Member, row: int) -> bool:
        """Evictions there made no room for such a task of this job, and nothing changed there since.

        Evictions elsewhere only make victims fewer; where some were taken back, all is looked at anew.
        """
        return self._known(member).get(row) == self._session.table.changes[row]

    def note_barren(self, member: Member, row: int) -> None:
        """All that may be evicted there is too little."""
        self._known(member)[row] = self._session.table.changes[row]

    def _known(self, member: Member) -> dict[int, int]:
        key, taken_back = (member.job.job.uid, self._session.class_of(member)), self._session.taken_back
        if key not in self._barren or self._barren[key][0] != taken_back:
            self._barren[key] = taken_back, {}
        return self._barren[key][1]


def total(members: Iterable[Member], like: Vector) -> Vector:
    """What they hold together."""
    return sum((member.request for member in members), np.zeros_like(like))


def in_order(session: Session, victims: Sequence[Member], preemptor: Gang) -> Heap[Member]:
    """Of a queue the last job first, of a job or of equal jobs the last task; of other queues as the plugins say."""

    def before(left: Member, right: Member) -> bool:
        mine, other = left.job.job.queue, right.job.job.queue
        if mine != other:
            return _queue_first(session, mine, other, preemptor.job.queue)
        if left.job is not right.job and (sign := session.compare_jobs(left.job, right.job)):
            return sign > 0
        return session.task_before(right, left)

    return Heap(before, victims)


def _queue_first(session: Session, left: str, right: str, of: str) -> bool:
    queues = session.queues
    if sign := session.compare(Point.VICTIM_QUEUE_ORDER, queues[left], queues[right], queues[of]):
        return sign < 0
    return session.queue_before(queues[right], queues[left])
