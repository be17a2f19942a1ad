"""InterPodAffinity: preferred terms of the pod, and those of pods that are there and see it."""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Rows, Vector
from hekla.engine.conditions import PodTerm
from hekla.engine.gangs import Member
from hekla.engine.nodeindex import Counts, Domain
from hekla.engine.plugins.nodeorder.scale import between
from hekla.engine.session import Session


def preferred(session: Session, member: Member) -> Callable[[Rows], Vector] | None:
    """The nodes with the largest sum become 100, those with the smallest 0."""
    census, nodes = session.census, session.nodes
    parts: list[tuple[int, Domain, Counts]] = [
        (weight, nodes.domain(term.topology_key), census.seen_by(term.pods))
        for weight, term in member.task.conditions.preferred_pods
    ]
    parts += [
        (1, nodes.domain(term.topology_key), _weights_of(session, term))
        for term in census.preferred
        if term.pods in member.seen_by
    ]
    if not parts:
        return None

    def score(rows: Rows) -> Vector:
        raw = sum((weight * domain.around(counts) for weight, domain, counts in parts), np.zeros(len(session.table)))
        return between(raw[rows])

    return score


def _weights_of(session: Session, term: PodTerm) -> Counts:
    def weight(member: Member) -> int:
        return sum(weight for weight, other in member.task.conditions.preferred_pods if other == term)

    return session.census.count(("prefers", term), weight)
