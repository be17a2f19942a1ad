"""A pod's constraints on nodes and on other pods, in Kubernetes' terms.

All are values: equal constraints compare equal, so pods of one template form one class.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label with the name of a namespace; every namespace has it."""
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (a word of the API, nothing listens here)


NONZERO_DEFAULTS = {"cpu": 100.0, "memory": 200.0 * 1024 * 1024}
"""What Kubernetes' scorers count for a container without requests."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on a label: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it. NotIn holds for a missing label too; Gt and Lt only for whole numbers."""
        test = _TESTS.get(self.operator)
        return test is not None and test(labels.get(self.key), self.values)


Selector = tuple[Requirement, ...]
"""All requirements must hold; the empty selector matches everything."""


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether every requirement holds."""
    return all(requirement.matches(labels) for requirement in selector)


def _compare(value: str | None, bounds: tuple[str, ...]) -> int:
    try:
        left, right = int(value or ""), int(bounds[0])
    except (ValueError, IndexError):
        return 0
    return (left > right) - (left < right)


_TESTS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
    "Gt": lambda value, values: _compare(value, values) > 0,
    "Lt": lambda value, values: _compare(value, values) < 0,
}


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """A term of node affinity: all requirements on labels and fields must hold. An empty term matches no node."""

    expressions: Selector = ()
    fields: Selector = ()

    @property
    def node_name(self) -> str:
        """The name of the only node that it may match; empty if it may match others."""
        for one in self.fields:
            if one.operator == "In" and len(one.values) == 1 and not self.expressions:
                return one.values[0] if len(self.fields) == 1 else ""
        return ""

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node with this name and these labels matches."""
        has_some = bool(self.expressions or self.fields)
        return has_some and matches(self.expressions, labels) and matches(self.fields, {"metadata.name": name})


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Selects pods by label in the named namespaces and in those that `namespace_selector` matches.

    `selector` None selects no pod; `namespace_selector` None adds no namespace.
    """

    selector: Selector | None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: Selector | None = None

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it selects a pod. The engine knows only one label of a namespace: its name."""
        if namespace not in self.namespaces and not self._matches_by_label(namespace):
            return False
        return self.selector is not None and matches(self.selector, labels)

    def _matches_by_label(self, namespace: str) -> bool:
        return self.namespace_selector is not None and matches(self.namespace_selector, {NAMESPACE_NAME: namespace})


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """A term of pod affinity or anti-affinity, by the domains of `topology_key`."""

    selector: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """A topology spread constraint. `is_hard`: DoNotSchedule; else ScheduleAnyway."""

    topology_key: str
    max_skew: int
    selector: PodSelector
    is_hard: bool = True
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port on the node itself."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS

    def conflicts_with(self, other: "HostPort") -> bool:
        """Whether port and protocol are equal and the addresses overlap."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """All of a pod's constraints except node selector and tolerations.

    required_node_terms      required node affinity: one term must match; None if there is none
    preferred_node_terms     preferred node affinity: weight and term
    pod_affinity             required pod affinity; pod_anti_affinity likewise
    preferred_pod_affinity   weight and term; a negative weight means anti-affinity
    volume_claims            persistent volume claims as namespace/name
    device_claims            resource claims as namespace/name
    """

    required_node_terms: tuple[NodeSelectorTerm, ...] | None = None
    preferred_node_terms: tuple[tuple[int, NodeSelectorTerm], ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_pod_affinity: tuple[tuple[int, PodAffinityTerm], ...] = ()
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volume_claims: tuple[str, ...] = ()
    device_claims: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def selectors(self) -> Iterator[PodSelector]:
        """Every pod selector in these constraints."""
        yield from (term.selector for term in (*self.pod_affinity, *self.pod_anti_affinity))
        yield from (term.selector for _weight, term in self.preferred_pod_affinity)
        yield from (constraint.selector for constraint in self.topology_spread)


NO_CONSTRAINTS = PodConstraints()
