"""Scorers by other pods: InterPodAffinity and PodTopologySpread.

Volcano ignores, for a pod without preferred terms of its own, the terms of pods placed in the same session on nodes
that had no pod with affinity before. Only a policy that follows Volcano does so too.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.constraints import PodAffinityTerm, TopologySpreadConstraint
from hekla.engine.job_info import PodInfo
from hekla.engine.node_index import Counts, TopologyDomains
from hekla.engine.plugins.nodeorder.node_scorers import MAX_NODE_SCORE, spread_normalized
from hekla.engine.session import Session


class PodAffinityScorer:
    """InterPodAffinity: preferred terms of the pod, and of pods whose terms select it.

    The nodes that count for pods without preferred terms are fixed when the session opens.
    """

    def __init__(self, session: Session) -> None:
        self._counted: Mask | None = None
        """The nodes whose pods count; None: all."""
        if session.policy.follows_volcano and session.topology_counts.has_preferences:
            self._counted = session.topology_counts.count("has affinity", _has_affinity) > 0

    def score(self, session: Session, pod: PodInfo) -> Callable[[Rows], Vector] | None:
        """The nodes with the largest sum become 100, those with the smallest 0."""
        topology_counts, nodes = session.topology_counts, session.node_index
        own = pod.spec.constraints.preferred_pod_affinity
        parts = [
            (weight, nodes.domain(term.topology_key), topology_counts.matching(term.selector)) for weight, term in own
        ]
        parts += [
            (1, nodes.domain(term.topology_key), _weights_of(session, term)) for term in topology_counts.preferring(pod)
        ]
        if not parts:
            return None
        counted = None if own else self._counted

        def score(rows: Rows) -> Vector:
            return spread_normalized(_weighted_sum(parts, counted, rows))

        return score


def _weighted_sum(parts: list[tuple[int, TopologyDomains, Counts]], counted: Mask | None, rows: Rows) -> Vector:
    amounts = (
        weight * domain.sum_around(counts if counted is None else np.where(counted, counts, 0), rows)
        for weight, domain, counts in parts
    )
    total: Vector = np.sum([*amounts], axis=0, dtype=float)
    return total


def _weights_of(session: Session, term: PodAffinityTerm) -> Counts:
    def weight(pod: PodInfo) -> int:
        return sum(weight for weight, other in pod.spec.constraints.preferred_pod_affinity if other == term)

    return session.topology_counts.count(("prefers", term), weight, term)


def _has_affinity(pod: PodInfo) -> int:
    conditions = pod.spec.constraints
    return int(bool(conditions.pod_affinity or conditions.pod_anti_affinity or conditions.preferred_pod_affinity))


_HOSTNAME = "kubernetes.io/hostname"
Part = Callable[[Rows, Mask], Vector]


def topology_spread(session: Session, pod: PodInfo) -> Callable[[Rows], Vector] | None:
    """PodTopologySpread, ScheduleAnyway: the nodes with the fewest such pods in their domain become 100.

    A node without the labels of all such constraints gets 0.
    """
    soft = [constraint for constraint in pod.spec.constraints.topology_spread if not constraint.is_hard]
    if not soft:
        return None
    labelled: Mask = np.logical_and.reduce([session.node_index.domain(one.topology_key).has_label for one in soft])
    parts = [_part(session, pod, one, labelled) for one in soft]
    return lambda rows: _scaled(rows, labelled[rows], parts)


def _part(session: Session, pod: PodInfo, constraint: TopologySpreadConstraint, labelled: Mask) -> Part:
    """Pods in the domain, times a weight that grows with the number of values to choose from."""
    domain, pods = (
        session.node_index.domain(constraint.topology_key),
        session.topology_counts.matching_not_terminating(constraint.selector),
    )
    counts_here = labelled & session.node_index.eligible_for_spread(pod.spec, constraint)
    by_node = constraint.topology_key == _HOSTNAME

    def raw(rows: Rows, eligible: Mask) -> Vector:
        choices = int(eligible.sum()) if by_node else len(np.unique(domain.codes[rows][eligible]))
        around = pods[rows] if by_node else domain.sum_around(np.where(counts_here, pods, 0))[rows]
        found: Vector = around * np.log(choices + 2) + (constraint.max_skew - 1)
        return found

    return raw


def _scaled(rows: Rows, eligible: Mask, parts: Sequence[Part]) -> Vector:
    raw = np.floor(sum((part(rows, eligible) for part in parts), np.zeros(len(eligible))) + 0.5)
    if not eligible.any():
        return np.zeros(len(eligible))
    most, least = raw[eligible].max(), raw[eligible].min()
    scores = (
        np.floor_divide(MAX_NODE_SCORE * (most + least - raw), most)
        if most > 0
        else np.full(len(raw), float(MAX_NODE_SCORE))
    )
    return np.where(eligible, scores, 0.0)
