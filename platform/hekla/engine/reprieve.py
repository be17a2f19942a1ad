"""Preemption that removes all victims of a node in thought, and then lets stay whom it can (`volcano-spec` §4).

Conditions that look at other pods (affinity, spread) are met this way also where evicting the last first would not meet
them. Of the nodes on which it works some are compared, and the one is taken whose victims matter least.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hekla.engine.gangs import Member
from hekla.engine.heap import Heap
from hekla.engine.policy import Argument
from hekla.engine.statement import Statement

_OFFSET = 2**31
"""Makes every priority positive, so that more victims weigh more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, who would have to go from it, and by which plugins' leave."""

    row: int
    victims: tuple[Member, ...]
    plugins: tuple[str, ...]

    @property
    def cost(self) -> tuple[int, int, int, float]:
        """Least wins: the highest priority, all priorities together, the number, and how long the first has run."""
        priorities = [victim.task.priority for victim in self.victims]
        highest = max(priorities, default=-_OFFSET)
        began = min((v.task.created_at for v in self.victims if v.task.priority == highest), default=0.0)
        return highest, sum(priority + _OFFSET for priority in priorities), len(priorities), -began


def how_many(nodes: int, arguments: Mapping[str, Argument]) -> int:
    """How many nodes on which it works are compared."""

    def number(name: str, default: int) -> int:
        value = arguments.get(name, default)
        return value if isinstance(value, int) else default

    least = number("minCandidateNodesAbsolute", 1)
    part = nodes * number("minCandidateNodesPercentage", 10) // 100
    return min(max(part, least), number("maxCandidateNodesAbsolute", 100), nodes)


def on_node(
    statement: Statement, row: int, order: Heap[Member], plugins: tuple[str, ...], has_room: Callable[[], bool]
) -> Candidate | None:
    """Who has to go from this node, when it works at all; the statement is left as it was.

    Evicted are all, in their order, and let stay from the last of it: those that are worth most.
    """
    mark = len(statement)
    gone = [order.pop() for _ in range(len(order))][::-1]
    for victim in gone:
        statement.evict(victim, "", "")
    works = has_room()
    statement.discard(mark)
    if not works:
        return None
    for victim in list(gone):
        others = [one for one in gone if one is not victim]
        for one in others:
            statement.evict(one, "", "")
        if has_room():
            gone = others
        statement.discard(mark)
    return Candidate(row, tuple(gone), plugins)
