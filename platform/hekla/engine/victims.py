"""Candidate victims on a node, and the order of eviction (`volcano-spec` §3.2, §4)."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import Mask, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session

Changes = npt.NDArray[np.int64]
_UID: Callable[[PodInfo], str] = attrgetter("spec.uid")
_KEY: Callable[[PodInfo], tuple[float, float, str]] = attrgetter("order_key")
_EVICTABLE = frozenset({PodStatus.BOUND, PodStatus.RUNNING})


class VictimIndex:
    """Candidates by node, and nodes where another search is useless."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._by_row: dict[int, tuple[int, list[PodInfo]]] = {}
        self._exhausted: tuple[Hashable, Changes] = None, session.table.change_counts
        """The key of job and class, and per row its change count when the search failed; -1: not tried."""

    def on_node(self, row: int) -> list[PodInfo]:
        """Bound and running pods of known jobs on a row, the last pod of each job first; in Volcano by uid.

        The order matters: if only some pods of a job may be evicted, plugins name the first ones.
        """
        changes = self._session.table.change_counts[row]
        if row not in self._by_row or self._by_row[row][0] != changes:
            residents, known = self._session.node_pods[row].values(), self._session.jobs.uids
            here = [m for m in residents if m.status in _EVICTABLE and m.job.group.uid in known]
            follows = self._session.policy.follows_volcano
            here.sort(key=_UID if follows else _KEY, reverse=not follows)
            self._by_row[row] = changes, here
        return self._by_row[row][1]

    def exhausted(self, pod: PodInfo) -> Mask:
        """Rows where evictions made no room for such a pod of this job, and that did not change since.

        Cached for the last job only. Evictions elsewhere only reduce victims; after an eviction was undone, every row
        is tried again.
        """
        found: Mask = self._exhausted_for(pod) == self._session.table.change_counts
        return found

    def mark_exhausted(self, pod: PodInfo, row: int) -> None:
        """Record that all victims of the row make too little room."""
        self._exhausted_for(pod)[row] = self._session.table.change_counts[row]

    def _exhausted_for(self, pod: PodInfo) -> Changes:
        key = pod.job.group.uid, self._session.class_of(pod), self._session.reverted_evictions
        if self._exhausted[0] != key:
            self._exhausted = key, np.full_like(self._session.table.change_counts, -1)
        return self._exhausted[1]


def total_request(pods: Iterable[PodInfo], like: Vector) -> Vector:
    """The sum of the requests of these pods, as a row like `like`."""
    return sum((pod.request for pod in pods), np.zeros_like(like))


def victims_queue(session: Session, victims: Sequence[PodInfo], preemptor: JobInfo) -> HeapQueue[PodInfo]:
    """Victims in eviction order: by the plugins' order of queues, then the last job, then the last pod first."""

    def before(left: PodInfo, right: PodInfo) -> bool:
        if left.job is not right.job:
            mine, other = left.job.group.queue, right.job.group.queue
            if mine != other:
                return _queue_first(session, mine, other, preemptor.group.queue)
            if sign := session.compare_jobs(left.job, right.job):
                return sign > 0
        return session.pod_before(right, left)

    return HeapQueue(before, victims)


def _queue_first(session: Session, left: str, right: str, reclaimer: str) -> bool:
    queues = session.queues
    if sign := session.compare(ExtensionPoint.VICTIM_QUEUE_ORDER, queues[left], queues[right], queues[reclaimer]):
        return sign < 0
    return session.queue_before(queues[right], queues[left])
