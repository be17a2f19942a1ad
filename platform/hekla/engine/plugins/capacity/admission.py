"""Whether a queue has room: to admit a job, and to place a pod."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hekla.engine import queue_attributes
from hekla.engine.columns import Vector
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import Vote
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.plugins.capacity.attributes import HAS_CHILDREN, AttributesByQueue, CapacityAttributes
from hekla.engine.plugins.capacity.devices import Demand
from hekla.engine.session import Session

Room = Callable[[CapacityAttributes], Vector]


class Admission:
    """A queue may borrow beyond what it deserves, up to its own limit and those of its ancestors."""

    def __init__(self, session: Session, by_queue: AttributesByQueue, demand: Demand) -> None:
        self._session, self._by_queue, self._demand = session, by_queue, demand
        self._countable = session.dimensions.without_pods

    def allocatable(self, queue: QueueSpec, pod: PodInfo) -> bool:
        """Whether the queue may take one more pod."""
        attributes, request = self._by_queue[queue.name], self._demand.of(pod)
        if attributes.problem or attributes.is_inner or self._session.is_closed(queue):
            return False
        requested = (request > 0) & self._countable
        return not any(
            (ancestor.allocated + request > ancestor.real_capability)[requested].any() for ancestor in attributes.path
        )

    def enqueueable(self, job: JobInfo) -> Vote:
        """Whether the job's minimum fits beside what is allocated and what admitted jobs need."""
        attributes = self._by_queue[job.group.queue]
        least = job.min_resources if job.min_resources is not None else np.zeros_like(attributes.real_capability)
        reason = self._why_not(attributes, "enqueue", least, lambda ancestor: ancestor.admission_room)
        if reason is None:
            return Vote.PERMIT
        self._session.reasons[job.group.uid] += (reason,)
        return Vote.REJECT

    def enqueued(self, job: JobInfo) -> None:
        """Count an admitted job."""
        if job.min_resources is not None:
            for attributes in self._by_queue[job.group.queue].path:
                attributes.inqueue += job.min_resources

    def why_not_allocatable(self, queue: QueueSpec, pods: Sequence[PodInfo]) -> PendingReason | None:
        """The reason if there is no room for all these pods."""
        need = sum((self._demand.of(pod) for pod in pods), np.zeros_like(self._session.total_resources))
        return self._why_not(
            self._by_queue[queue.name], "allocate", need, lambda ancestor: ancestor.real_capability - ancestor.allocated
        )

    def _why_not(
        self, attributes: CapacityAttributes, action: str, need: Vector, room_in: Room
    ) -> PendingReason | None:
        """The reason at the first limit on the path to the root that is exceeded; None if there is room in all."""
        if problem := attributes.problem or (HAS_CHILDREN if attributes.is_inner else ""):
            amount = self._session.dimensions.resources(need)
            return PendingReason(Cause.QUOTA, action, "capacity", problem, amount, ever=False)
        for ancestor in attributes.path:
            room = room_in(ancestor)
            is_shut = ancestor is attributes and self._session.is_closed(ancestor.queue)
            if is_shut or queue_attributes.exceeds(self._session, need, room).any():
                return self._refusal(attributes, ancestor, action, need, room)
        return None

    def _refusal(
        self, attributes: CapacityAttributes, ancestor: CapacityAttributes, action: str, need: Vector, room: Vector
    ) -> PendingReason:
        reason = queue_attributes.no_room_reason(self._session, "capacity", action, ancestor, need, room)
        if ancestor is not attributes and reason.code == "queue_is_full":
            return replace(reason, code="parent_queue_is_full")
        return reason
