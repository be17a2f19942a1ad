"""InterPodAffinity: near required pods, and apart from pods to avoid, in both directions.

Nodes are near each other if their label `topology_key` has the same value.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hekla.engine.constraints import PodAffinityTerm
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.node_index import Counts
from hekla.engine.session import Session

Check = Callable[[], Refusal]


def predicate(session: Session, pod: PodInfo) -> Callable[[], Iterator[Refusal]] | None:
    """Refuse nodes far from required pods, near pods to avoid, or near pods that avoid this one."""
    checks = [*_near(session, pod), *_apart(session, pod), *_avoided(session, pod)]
    return (lambda: (check() for check in checks)) if checks else None


def _near(session: Session, pod: PodInfo) -> Iterator[Check]:
    """Pods that match all terms must be near, for each term.

    The first pod of a group that requires itself may be placed anywhere.
    """
    terms = pod.spec.constraints.pod_affinity
    if not terms:
        return
    selectors = [term.selector for term in terms]
    domains = [session.node_index.domain(term.topology_key) for term in terms]
    counts = session.topology_counts.count(
        ("near", terms), lambda other: int(other.matching_selectors.issuperset(selectors)), selectors[0]
    )
    needs_itself = pod.matching_selectors.issuperset(selectors)
    unlabelled = ~np.logical_and.reduce([domain.has_label for domain in domains])

    def refuse() -> Refusal:
        sums = [domain.sum_by_value(counts) for domain in domains]
        if needs_itself and not any(found.any() for found in sums):
            return Refusal(unlabelled, "pod affinity")
        around = [domain.per_row(found) > 0 for domain, found in zip(domains, sums, strict=True)]
        return Refusal(unlabelled | ~np.logical_and.reduce(around), "pod affinity")

    yield refuse


def _apart(session: Session, pod: PodInfo) -> Iterator[Check]:
    for term in pod.spec.constraints.pod_anti_affinity:
        yield _meets(session, term, session.topology_counts.matching(term.selector), "pod anti-affinity")


def _avoided(session: Session, pod: PodInfo) -> Iterator[Check]:
    for term in session.topology_counts.avoiding(pod):
        yield _meets(session, term, _who_has(session, term), "anti-affinity of its pods")


def _meets(session: Session, term: PodAffinityTerm, counts: Counts, reason: str) -> Check:
    domain = session.node_index.domain(term.topology_key)
    return lambda: Refusal(domain.sum_around(counts) > 0, reason, is_unresolvable=False)


def _who_has(session: Session, term: PodAffinityTerm) -> Counts:
    return session.topology_counts.count(
        ("apart", term), lambda other: int(term in other.spec.constraints.pod_anti_affinity), term
    )
