"""Which queue goes first, and whose tasks go first when some must go."""

from hekla.engine.model import QueueSpec
from hekla.engine.plugins.capacity.attributes import AttributesByQueue, CapacityAttributes


class CapacityOrder:
    """By priority, then by how much of what it deserves a queue holds."""

    def __init__(self, by_queue: AttributesByQueue) -> None:
        self._by_queue = by_queue

    def of_queues(self, left: QueueSpec, right: QueueSpec) -> float:
        """In a tree the two branches that part are compared; a queue without children goes before one with some."""
        if left.priority != right.priority:
            return right.priority - left.priority
        mine, other = self._by_queue[left.name], self._by_queue[right.name]
        if mine.is_inner or other.is_inner:
            return mine.is_inner - other.is_inner
        return _by_share(*_branches(mine, other))

    def of_victims(self, left: QueueSpec, right: QueueSpec, of: QueueSpec) -> int:
        """The nearer relatives of the queue that takes go first."""
        return self._kinship(right, of) - self._kinship(left, of)

    def _kinship(self, queue: QueueSpec, of: QueueSpec) -> int:
        """How many queues above are common to both."""
        return len(_common(self._by_queue[queue.name], self._by_queue[of.name]))


def _common(left: CapacityAttributes, right: CapacityAttributes) -> list[CapacityAttributes]:
    pairs = zip(reversed(left.path), reversed(right.path), strict=False)
    return [mine for mine, other in pairs if mine is other]


def _branches(left: CapacityAttributes, right: CapacityAttributes) -> tuple[CapacityAttributes, CapacityAttributes]:
    """The highest queues above (or at) each that are not above the other."""
    common = len(_common(left, right))
    return left.path[-1 - common], right.path[-1 - common]


def _by_share(left: CapacityAttributes, right: CapacityAttributes) -> float:
    if left.share != right.share:
        return left.share - right.share
    return right.deserves_any - left.deserves_any
