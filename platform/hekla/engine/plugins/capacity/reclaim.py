"""What a queue may reclaim from others, and which pods are victims."""

from collections.abc import Sequence
from itertools import zip_longest

from hekla.engine import victims
from hekla.engine.columns import EPSILON, Mask, Vector, fits
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.plugins.capacity.attributes import AttributesByQueue, CapacityAttributes
from hekla.engine.queue_tree import ROOT
from hekla.engine.session import Session


class Reclaim:
    """A queue reclaims up to what it deserves, from queues that hold more than they deserve.

    `level`: how many of its ancestors count too (the root never does).
    """

    def __init__(self, session: Session, by_queue: AttributesByQueue, level: int) -> None:
        self._session, self._by_queue, self._level = session, by_queue, level
        self._countable = session.dimensions.without_pods

    def preemptive(self, queue: QueueSpec, pods: Sequence[PodInfo]) -> bool:
        """Whether the queue may reclaim for these pods.

        It must stay within its limit, and it or an ancestor within what it deserves in at least one requested
        dimension.
        """
        attributes, wanted = self._by_queue[queue.name], victims.total_request(pods, self._session.total_resources)
        requested = self._requested(wanted)
        if (
            attributes.problem
            or self._session.is_closed(queue)
            or (attributes.allocated + wanted > attributes.real_capability)[requested].any()
        ):
            return False
        return any(_deserves(one, wanted, requested) for one in (attributes, *self._above(attributes)))

    def reclaimable(self, pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        """From each queue, the pods beyond what it deserves, in eviction order."""
        order = victims.victims_queue(self._session, candidates, pod.job)
        ordered = [order.pop() for _ in range(len(order))]
        reclaimer = self._by_queue[pod.job.group.queue]
        requested = self._requested(pod.request)
        alike = [victim for victim in ordered if (self._requested(victim.request) & requested).any()]
        return self._borrowed(reclaimer, alike, requested)

    def evictable(self, job: JobInfo, candidates: Sequence[PodInfo], action: str) -> list[PodInfo]:
        """For a whole job: between queues as `reclaimable`; within a queue all candidates."""
        if action != "gangreclaim":
            return list(candidates)
        requested = self._requested(victims.total_request(job.pending(), self._session.total_resources))
        return self._borrowed(self._by_queue[job.group.queue], candidates, requested)

    def _borrowed(self, reclaimer: CapacityAttributes, candidates: Sequence[PodInfo], requested: Mask) -> list[PodInfo]:
        left: dict[str, Vector] = {}
        chosen: list[PodInfo] = []
        for victim in () if reclaimer.problem else candidates:
            attributes = self._by_queue[victim.job.group.queue]
            held = {one.queue.name: left.get(one.queue.name, one.allocated) for one in attributes.path}
            if self._may_give(reclaimer, attributes, victim, held, requested):
                left |= {name: amount - victim.request for name, amount in held.items()}
                chosen.append(victim)
        return chosen

    def _may_give(
        self,
        reclaimer: CapacityAttributes,
        attributes: CapacityAttributes,
        victim: PodInfo,
        held: dict[str, Vector],
        requested: Mask,
    ) -> bool:
        rest = held[attributes.queue.name] - victim.request
        if not fits(attributes.guarantee, rest):
            return False
        relevant = self._requested(victim.request)
        if not (relevant & attributes.deserved_without_pods).any():
            if self._is_protected_in_family(reclaimer, attributes, requested):
                return False
        elif not _is_over(attributes, held, relevant):
            return False
        pairs = zip_longest(self._above(attributes), self._above(reclaimer))
        return all(_is_over(above, held, relevant) for above, theirs in pairs if above and above is not theirs)

    def _is_protected_in_family(
        self, reclaimer: CapacityAttributes, attributes: CapacityAttributes, requested: Mask
    ) -> bool:
        """Whether the reclaimer deserves none of the requested resources and shares an ancestor with the victim.

        The victim's queue deserves none either, so what the ancestor deserves is already used within its family.
        """
        theirs = {one.queue.name for one in self._above(reclaimer)}
        related = any(one.queue.name in theirs for one in self._above(attributes))
        return related and not (reclaimer.deserved_without_pods & requested).any()

    def _above(self, attributes: CapacityAttributes) -> list[CapacityAttributes]:
        return [one for one in attributes.path[1 : 1 + self._level] if one.queue.name != ROOT]

    def _requested(self, amount: Vector) -> Mask:
        requested: Mask = (amount > 0) & self._countable
        return requested


def _deserves(attributes: CapacityAttributes, wanted: Vector, requested: Mask) -> bool:
    """Whether a requested dimension would stay within the deserved amount; dimensions where both are 0 do not count."""
    future = attributes.allocated + wanted
    known = requested & ~((future < EPSILON) & (attributes.deserved < EPSILON))
    return bool((future < attributes.deserved + EPSILON)[known].any())


def _is_over(attributes: CapacityAttributes, held: dict[str, Vector], relevant: Mask) -> bool:
    return bool((held[attributes.queue.name] > attributes.deserved)[relevant & attributes.deserved_without_pods].any())
