"""The order of queues, and the order in which queues lose pods."""

from hekla.engine.model import QueueSpec
from hekla.engine.plugins.capacity.attributes import AttributesByQueue, CapacityAttributes


class CapacityOrder:
    """By priority, then by the part of its deserved resources that a queue holds."""

    def __init__(self, by_queue: AttributesByQueue) -> None:
        self._by_queue = by_queue

    def of_queues(self, left: QueueSpec, right: QueueSpec) -> float:
        """Negative if left comes first. In a tree, the diverging branches are compared; leaf queues come first."""
        if left.priority != right.priority:
            return right.priority - left.priority
        mine, other = self._by_queue[left.name], self._by_queue[right.name]
        if mine.is_inner or other.is_inner:
            return mine.is_inner - other.is_inner
        return _by_share(*_branches(mine, other))

    def of_victims(self, left: QueueSpec, right: QueueSpec, of: QueueSpec) -> int:
        """Negative if left loses pods first: the closer relative of the reclaiming queue `of` does."""
        return self._kinship(right, of) - self._kinship(left, of)

    def _kinship(self, queue: QueueSpec, of: QueueSpec) -> int:
        """The number of ancestors that both have in common."""
        return len(_common(self._by_queue[queue.name], self._by_queue[of.name]))


def _common(left: CapacityAttributes, right: CapacityAttributes) -> list[CapacityAttributes]:
    pairs = zip(reversed(left.path), reversed(right.path), strict=False)
    return [mine for mine, other in pairs if mine is other]


def _branches(left: CapacityAttributes, right: CapacityAttributes) -> tuple[CapacityAttributes, CapacityAttributes]:
    """On each path, the highest queue that is not on the other path."""
    common = len(_common(left, right))
    return left.path[-1 - common], right.path[-1 - common]


def _by_share(left: CapacityAttributes, right: CapacityAttributes) -> float:
    if left.share != right.share:
        return left.share - right.share
    return right.deserves_any - left.deserves_any
