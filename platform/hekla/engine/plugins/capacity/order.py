"""Which queue goes first, and whose tasks go first when some must go."""

from hekla.engine.model import Queue
from hekla.engine.plugins.capacity.books import Account, Books


class Order:
    """By priority, then by how much of what it deserves a queue holds."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def of_queues(self, left: Queue, right: Queue) -> float:
        """In a tree the two branches that part are compared; a queue without children goes before one with some."""
        if left.priority != right.priority:
            return right.priority - left.priority
        mine, other = self._books[left.name], self._books[right.name]
        if mine.is_inner or other.is_inner:
            return mine.is_inner - other.is_inner
        return _by_share(*_branches(mine, other))

    def of_victims(self, left: Queue, right: Queue, of: Queue) -> int:
        """The nearer relatives of the queue that takes go first."""
        return self._kinship(right, of) - self._kinship(left, of)

    def _kinship(self, queue: Queue, of: Queue) -> int:
        """How many queues above are common to both."""
        return len(_common(self._books[queue.name], self._books[of.name]))


def _common(left: Account, right: Account) -> list[Account]:
    pairs = zip(reversed(left.line), reversed(right.line), strict=False)
    return [mine for mine, other in pairs if mine is other]


def _branches(left: Account, right: Account) -> tuple[Account, Account]:
    """The highest queues above (or at) each that are not above the other."""
    common = len(_common(left, right))
    return left.line[-1 - common], right.line[-1 - common]


def _by_share(left: Account, right: Account) -> float:
    if left.share != right.share:
        return left.share - right.share
    return right.owns_any - left.owns_any
