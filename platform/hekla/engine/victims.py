"""Who may have to go from a node, and in what order (`volcano-spec` §3.2, §4)."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import Mask, Vector
from hekla.engine.gangs import Gang, Member
from hekla.engine.heap import Heap
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point
from hekla.engine.session import Session

Changes = npt.NDArray[np.int64]
_UID: Callable[[Member], str] = attrgetter("task.uid")
_KEY: Callable[[Member], tuple[float, float, str]] = attrgetter("key")
_MIGHT_GO = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})


class Grounds:
    """Where victims are looked for: who might go from each node, and where looking again is of no use."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._here: dict[int, tuple[int, list[Member]]] = {}
        self._barren: tuple[Hashable, Changes] = None, session.table.changes
        """For whom it is known, and how often each row had been changed when it was of no use; -1: it was not tried."""

    def on_node(self, row: int) -> list[Member]:
        """The tasks of known jobs that run on a node or are about to: the last of each job first, in Volcano by uid.

        Where only some of a job may go, plugins name the first of them.
        """
        changes = self._session.table.changes[row]
        if row not in self._here or self._here[row][0] != changes:
            residents, known = self._session.residents[row].values(), self._session.gangs
            here = [m for m in residents if m.status in _MIGHT_GO and m.job.job.uid in known]
            follows = self._session.policy.follows_volcano
            here.sort(key=_UID if follows else _KEY, reverse=not follows)
            self._here[row] = changes, here
        return self._here[row][1]

    def barren(self, member: Member) -> Mask:
        """The rows where evictions made no room for such a task of this job, and nothing changed since.

        Evictions elsewhere only make victims fewer; where some were taken back, all is looked at anew. Jobs come one
        after another, so that it is known for the last one only.
        """
        found: Mask = self._known(member) == self._session.table.changes
        return found

    def note_barren(self, member: Member, row: int) -> None:
        """All that may be evicted there is too little."""
        self._known(member)[row] = self._session.table.changes[row]

    def _known(self, member: Member) -> Changes:
        key = member.job.job.uid, self._session.class_of(member), self._session.taken_back
        if self._barren[0] != key:
            self._barren = key, np.full_like(self._session.table.changes, -1)
        return self._barren[1]


def total(members: Iterable[Member], like: Vector) -> Vector:
    """What they hold together."""
    return sum((member.request for member in members), np.zeros_like(like))


def in_order(session: Session, victims: Sequence[Member], preemptor: Gang) -> Heap[Member]:
    """Of a queue the last job first, of a job or of equal jobs the last task; of other queues as the plugins say."""

    def before(left: Member, right: Member) -> bool:
        if left.job is not right.job:
            mine, other = left.job.job.queue, right.job.job.queue
            if mine != other:
                return _queue_first(session, mine, other, preemptor.job.queue)
            if sign := session.compare_jobs(left.job, right.job):
                return sign > 0
        return session.task_before(right, left)

    return Heap(before, victims)


def _queue_first(session: Session, left: str, right: str, of: str) -> bool:
    queues = session.queues
    if sign := session.compare(Point.VICTIM_QUEUE_ORDER, queues[left], queues[right], queues[of]):
        return sign < 0
    return session.queue_before(queues[right], queues[left])
