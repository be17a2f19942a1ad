"""Labels, taints and images of nodes as columns: each constraint is evaluated once for all nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hekla.domain.taints import Taint
from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.constraints import NodeSelectorTerm, Requirement, TopologySpreadConstraint
from hekla.engine.model import NodeSpec, PodSpec, Toleration

Counts = npt.NDArray[np.int64]
UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable")
_REPELLING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True)
class TopologyDomains:
    """The topology domains of a label: per row the number of its value, or -1 without the label."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.intp]

    @cached_property
    def has_label(self) -> Mask:
        """The rows with the label."""
        found: Mask = self.codes >= 0
        return found

    def sum_by_value(self, counts: Counts) -> Counts:
        """Per value the sum over its rows."""
        return self._sums(counts)[:-1]

    def per_row(self, sums: Counts) -> Counts:
        """Per row the entry of its value; 0 without the label."""
        found: Counts = np.append(sums, 0).take(self.codes)
        return found

    def sum_around(self, counts: Counts, rows: Rows = slice(None)) -> Counts:
        """Per row the sum over all rows with the same value; `rows`: for these only."""
        found: Counts = self._sums(counts).take(self.codes[rows])
        return found

    def _sums(self, counts: Counts) -> Counts:
        """As `sum_by_value`, then a zero: the entry at -1, for rows without the label."""
        total = np.zeros(len(self.values) + 1, dtype=np.int64)
        (rows,) = counts.nonzero()  # few rows count, and `add.at` is slow
        np.add.at(total, self.codes[rows], counts[rows])
        total[-1] = 0
        return total


class NodeIndex:
    """Labels, taints and images of the nodes of a session, by row."""

    def __init__(self, nodes: Sequence[NodeSpec]) -> None:
        self._nodes = nodes
        self._domains: dict[str, TopologyDomains] = {}
        self._masks: dict[tuple[bool, Requirement], Mask] = {}
        self._images: dict[str, Vector | None] = {}
        self.unschedulable: Mask = self._mask(node.unschedulable for node in nodes)
        self.not_ready: Mask = self._mask(not node.is_ready for node in nodes)
        taints = {taint for node in nodes for taint in node.taints}
        in_order = sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect))
        self.taints = {taint: self._with_taint(taint) for taint in in_order}
        """All taints, in a fixed order, with the rows that have them."""

    def _mask(self, answers: Iterable[bool]) -> Mask:
        return np.fromiter(answers, dtype=bool, count=len(self._nodes))

    def _with_taint(self, taint: Taint) -> Mask:
        return self._mask(taint in node.taints for node in self._nodes)

    def domain(self, key: str) -> TopologyDomains:
        """The topology domains of a label."""
        found = self._domains.get(key)
        if found is None:
            numbers: dict[str, int] = {}
            labels = (node.labels.get(key) for node in self._nodes)
            codes = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in labels]
            found = self._domains[key] = TopologyDomains(tuple(numbers), np.array(codes, dtype=np.intp))
        return found

    def matching(self, requirement: Requirement, *, of_fields: bool = False) -> Mask:
        """Rows whose labels (or fields: the name) meet the requirement."""
        found = self._masks.get((of_fields, requirement))
        if found is None:
            found = self._by_name(requirement) if of_fields else self._by_label(requirement)
            self._masks[of_fields, requirement] = found
        return found

    def _by_label(self, requirement: Requirement) -> Mask:
        domain = self.domain(requirement.key)
        answers = [requirement.matches({requirement.key: value}) for value in domain.values]
        answers.append(requirement.matches({}))
        found: Mask = np.array(answers, dtype=bool)[domain.codes]
        return found

    def _by_name(self, requirement: Requirement) -> Mask:
        return self._mask(requirement.matches({"metadata.name": node.name}) for node in self._nodes)

    def matching_term(self, term: NodeSelectorTerm) -> Mask:
        """Rows that meet all requirements of a term."""
        found: Mask = np.full(len(self._nodes), bool(term.expressions or term.fields))
        for requirement in term.expressions:
            found = found & self.matching(requirement)
        for requirement in term.fields:
            found = found & self.matching(requirement, of_fields=True)
        return found

    def matching_any(self, terms: Iterable[NodeSelectorTerm] | None) -> Mask:
        """Rows that meet one of the terms; all rows for None, none for an empty list."""
        if terms is None:
            return np.ones(len(self._nodes), dtype=bool)
        found: Mask = np.zeros(len(self._nodes), dtype=bool)
        for term in terms:
            found = found | self.matching_term(term)
        return found

    def matching_affinity(self, spec: PodSpec) -> Mask:
        """Rows that meet the pod's node selector and required node affinity."""
        found = self.matching_any(spec.constraints.required_node_terms)
        for key, value in spec.node_selector.items():
            found = found & self.matching(Requirement(key, "In", (value,)))
        return found

    def image_worth(self, image: str) -> Vector | None:
        """Per row the size of the image where the node has it, times the part of nodes that do: one node shall not
        attract all pods. None: no node has it.
        """
        if image not in self._images:
            sizes: Vector = np.array([node.images.get(image, 0.0) for node in self._nodes])
            has = sizes > 0
            self._images[image] = np.floor(sizes * has.mean()) if has.any() else None
        return self._images[image]

    def untolerated(self, tolerations: Sequence[Toleration]) -> dict[Taint, Mask]:
        """NoSchedule and NoExecute taints without toleration, with their rows."""
        return {t: m for t, m in self.taints.items() if t.effect in _REPELLING and not is_tolerated(t, tolerations)}

    def eligible_for_spread(self, spec: PodSpec, constraint: TopologySpreadConstraint) -> Mask:
        """Rows whose pods count for a spread constraint of the pod."""
        found: Mask = np.ones(len(self._nodes), dtype=bool)
        if constraint.honors_affinity:
            found = found & self.matching_affinity(spec)
        if constraint.honors_taints:
            for repelled in self.untolerated(spec.tolerations).values():
                found = found & ~repelled
        return found


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether a toleration matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value
