"""Topology-aware preemption: remove victims of a node tentatively, then reprieve as many as possible.

This can meet constraints on other pods (affinity, spread) that evicting one victim after the other would not meet. Some
candidate nodes are compared, and the one with the least important victims is chosen (`volcano-spec` §4).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hekla.engine.job_info import PodInfo
from hekla.engine.policy import Argument
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.statement import Statement

_OFFSET = 2**31
"""Makes every priority positive, so that more victims cost more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate node with its victims and the plugins that allowed them."""

    row: int
    victims: tuple[PodInfo, ...]
    plugins: tuple[str, ...]

    @property
    def cost(self) -> tuple[int, int, int, float]:
        """The sort key, least first: highest priority, sum of priorities, number, and age of the oldest victim."""
        priorities = [victim.spec.priority for victim in self.victims]
        highest = max(priorities, default=-_OFFSET)
        began = min((v.spec.created_at for v in self.victims if v.spec.priority == highest), default=0.0)
        return highest, sum(priority + _OFFSET for priority in priorities), len(priorities), -began


def candidate_limit(nodes: int, arguments: Mapping[str, Argument]) -> int:
    """How many candidate nodes are compared."""

    def number(name: str, default: int) -> int:
        value = arguments.get(name, default)
        return value if isinstance(value, int) else default

    least = number("minCandidateNodesAbsolute", 1)
    part = nodes * number("minCandidateNodesPercentage", 10) // 100
    return min(max(part, least), number("maxCandidateNodesAbsolute", 100), nodes)


def select_victims_on_node(
    statement: Statement, row: int, order: HeapQueue[PodInfo], plugins: tuple[str, ...], has_room: Callable[[], bool]
) -> Candidate | None:
    """The victims on this node, or None if all of them are not enough. The statement is unchanged afterwards.

    They are evicted tentatively until there is room; then victims are reprieved, the most important first.
    """
    mark, gone, works = len(statement), list[PodInfo](), False
    while len(order) and not works:
        gone.insert(0, order.pop())
        statement.evict(gone[0], "", "")
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
