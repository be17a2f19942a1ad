"""InterPodAffinity: near to the pods one needs, apart from those one must not meet, in both directions.

"Near" is where a node's label `topology_key` has the same value.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hekla.engine.conditions import PodTerm
from hekla.engine.gangs import Member
from hekla.engine.nodeindex import Counts
from hekla.engine.places import Refusal
from hekla.engine.session import Session

Ask = Callable[[], Refusal]


def refusals_now(session: Session, member: Member) -> Callable[[], Iterator[Refusal]] | None:
    """Refuse nodes far from what the pod needs, near what it avoids, or near pods that avoid it."""
    asks = [*_near(session, member), *_apart(session, member), *_avoided(session, member)]
    return (lambda: (ask() for ask in asks)) if asks else None


def _near(session: Session, member: Member) -> Iterator[Ask]:
    """Pods that meet all terms must be near by each of them. The first of a group that needs itself may go anywhere."""
    terms = member.task.conditions.near
    if not terms:
        return
    selectors = [term.pods for term in terms]
    domains = [session.nodes.domain(term.topology_key) for term in terms]
    counts = session.census.count(("near", terms), lambda other: int(other.seen_by.issuperset(selectors)))
    needs_itself = member.seen_by.issuperset(selectors)
    unlabelled = ~np.logical_and.reduce([domain.has for domain in domains])

    def refuse() -> Refusal:
        sums = [domain.sums(counts) for domain in domains]
        if needs_itself and not any(found.any() for found in sums):
            return Refusal(unlabelled, "pod affinity")
        around = [domain.spread(found) > 0 for domain, found in zip(domains, sums, strict=True)]
        return Refusal(unlabelled | ~np.logical_and.reduce(around), "pod affinity")

    yield refuse


def _apart(session: Session, member: Member) -> Iterator[Ask]:
    for term in member.task.conditions.apart:
        yield _meets(session, term, session.census.seen_by(term.pods), "pod anti-affinity")


def _avoided(session: Session, member: Member) -> Iterator[Ask]:
    for term in session.census.apart:
        if term.pods in member.seen_by:
            yield _meets(session, term, _who_has(session, term), "anti-affinity of its pods")


def _meets(session: Session, term: PodTerm, counts: Counts, reason: str) -> Ask:
    domain = session.nodes.domain(term.topology_key)
    return lambda: Refusal(domain.around(counts) > 0, reason, is_final=False)


def _who_has(session: Session, term: PodTerm) -> Counts:
    return session.census.count(("apart", term), lambda other: int(term in other.task.conditions.apart))
