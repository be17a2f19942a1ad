"""InterPodAffinity: preferred terms of the pod, and those of pods that are there and see it.

Volcano forgets, for a pod without such terms of its own, the terms of pods placed in the same session on nodes that had
no pod with affinity before. Only a policy that follows Volcano does so too.
"""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.conditions import PodTerm
from hekla.engine.gangs import Member
from hekla.engine.nodeindex import Counts, Domain
from hekla.engine.plugins.nodeorder.scale import between
from hekla.engine.session import Session


class Preferences:
    """`preferred` scores; the nodes that count for pods without preferences of their own are fixed at the opening."""

    def __init__(self, session: Session) -> None:
        self._counted: Mask = np.ones(len(session.table), dtype=bool)
        if session.policy.follows_volcano and session.census.preferred:
            self._counted = session.census.count("has affinity", _has_affinity) > 0

    def preferred(self, session: Session, member: Member) -> Callable[[Rows], Vector] | None:
        """The nodes with the largest sum become 100, those with the smallest 0."""
        census, nodes = session.census, session.nodes
        own = member.task.conditions.preferred_pods
        parts = [(weight, nodes.domain(term.topology_key), census.seen_by(term.pods)) for weight, term in own]
        seeing = [term for term in census.preferred if term.pods in member.seen_by]
        parts += [(1, nodes.domain(term.topology_key), _weights_of(session, term)) for term in seeing]
        if not parts:
            return None
        counted = np.ones(len(session.table), dtype=bool) if own else self._counted

        def score(rows: Rows) -> Vector:
            return between(_sum(parts, counted)[rows])

        return score


def _sum(parts: list[tuple[int, Domain, Counts]], counted: Mask) -> Vector:
    total: Vector = np.zeros(len(counted))
    for weight, domain, counts in parts:
        total += weight * domain.around(np.where(counted, counts, 0))
    return total


def _weights_of(session: Session, term: PodTerm) -> Counts:
    def weight(member: Member) -> int:
        return sum(weight for weight, other in member.task.conditions.preferred_pods if other == term)

    return session.census.count(("prefers", term), weight)


def _has_affinity(member: Member) -> int:
    conditions = member.task.conditions
    return int(bool(conditions.near or conditions.apart or conditions.preferred_pods))
