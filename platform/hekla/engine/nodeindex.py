"""Labels and taints of nodes as columns: what a condition says of every node, asked once for each condition."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import Mask
from hekla.engine.conditions import NodeTerm, Requirement, Spread
from hekla.engine.model import Node, Taint, Task, Toleration

Counts = npt.NDArray[np.int64]
UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable")
_REPELLING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Domain:
    """How a label divides the nodes: for each row the number of its value, or -1 where the label is missing."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.intp]

    @property
    def has(self) -> Mask:
        """The rows with the label."""
        found: Mask = self.codes >= 0
        return found

    def sums(self, counts: Counts) -> Counts:
        """The sum of each value's rows."""
        total = np.zeros(len(self.values), dtype=np.int64)
        has = self.has
        np.add.at(total, self.codes[has], counts[has])
        return total

    def spread(self, sums: Counts) -> Counts:
        """Each row gets what its value has; a row without the label gets 0."""
        found: Counts = np.append(sums, 0)[self.codes]
        return found

    def around(self, counts: Counts) -> Counts:
        """For each row the sum over all rows with the same value."""
        return self.spread(self.sums(counts))


class NodeIndex:
    """The nodes of a session, in the order of their rows."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._domains: dict[str, Domain] = {}
        self._masks: dict[tuple[bool, Requirement], Mask] = {}
        self.unschedulable: Mask = self._where(node.unschedulable for node in nodes)
        self.taints = {taint: self._with_taint(taint) for taint in _distinct_taints(nodes)}
        """Every taint there is, in a fixed order, and the rows that have it."""

    def _where(self, answers: Iterable[bool]) -> Mask:
        return np.fromiter(answers, dtype=bool, count=len(self._nodes))

    def _with_taint(self, taint: Taint) -> Mask:
        return self._where(taint in node.taints for node in self._nodes)

    def domain(self, key: str) -> Domain:
        """How the label divides the nodes."""
        found = self._domains.get(key)
        if found is None:
            numbers: dict[str, int] = {}
            labels = (node.labels.get(key) for node in self._nodes)
            codes = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in labels]
            found = self._domains[key] = Domain(tuple(numbers), np.array(codes, dtype=np.intp))
        return found

    def matching(self, requirement: Requirement, *, of_fields: bool = False) -> Mask:
        """The rows whose labels (or fields: a node's name) meet the requirement."""
        found = self._masks.get((of_fields, requirement))
        if found is None:
            found = self._by_name(requirement) if of_fields else self._by_label(requirement)
            self._masks[of_fields, requirement] = found
        return found

    def _by_label(self, requirement: Requirement) -> Mask:
        domain = self.domain(requirement.key)
        answers = [requirement.holds({requirement.key: value}) for value in domain.values]
        answers.append(requirement.holds({}))
        found: Mask = np.array(answers, dtype=bool)[domain.codes]
        return found

    def _by_name(self, requirement: Requirement) -> Mask:
        return self._where(requirement.holds({"metadata.name": node.name}) for node in self._nodes)

    def in_term(self, term: NodeTerm) -> Mask:
        """The rows that meet all of a term."""
        found: Mask = np.full(len(self._nodes), bool(term.expressions or term.fields))
        for requirement in term.expressions:
            found = found & self.matching(requirement)
        for requirement in term.fields:
            found = found & self.matching(requirement, of_fields=True)
        return found

    def in_one_of(self, terms: Iterable[NodeTerm] | None) -> Mask:
        """The rows that meet one of the terms; None, unlike no term at all, means all rows."""
        if terms is None:
            return np.ones(len(self._nodes), dtype=bool)
        found: Mask = np.zeros(len(self._nodes), dtype=bool)
        for term in terms:
            found = found | self.in_term(term)
        return found

    def wanted_by(self, task: Task) -> Mask:
        """The rows that meet the task's node selector and required node affinity."""
        found = self.in_one_of(task.conditions.node_terms)
        for key, value in task.node_selector.items():
            found = found & self.matching(Requirement(key, "In", (value,)))
        return found

    def repelling(self, tolerations: Sequence[Toleration]) -> dict[Taint, Mask]:
        """The taints that keep such a pod away, and the rows that have them."""
        return {t: m for t, m in self.taints.items() if t.effect in _REPELLING and not is_borne(t, tolerations)}

    def counted_for(self, task: Task, constraint: Spread) -> Mask:
        """The rows whose pods count for a spread constraint of the task."""
        found: Mask = np.ones(len(self._nodes), dtype=bool)
        if constraint.honors_affinity:
            found = found & self.wanted_by(task)
        if constraint.honors_taints:
            for repelled in self.repelling(task.tolerations).values():
                found = found & ~repelled
        return found


def is_borne(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations is for this taint."""
    return any(_bears(toleration, taint) for toleration in tolerations)


def _bears(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def _distinct_taints(nodes: Iterable[Node]) -> list[Taint]:
    taints = {taint for node in nodes for taint in node.taints}
    return sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect))
