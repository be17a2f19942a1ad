"""What a pod asks of the nodes and of the other pods around it, in Kubernetes' terms.

Everything here is a value: equal conditions are equal objects, so that pods of one template form one class.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The one label that every namespace has: its name."""
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (a word of the API, nothing listens here)


LITTLE = {"cpu": 100.0, "memory": 200.0 * 1024 * 1024}
"""What a container that names no request counts for in Kubernetes' scorers."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """NotIn holds for a missing label too; Gt and Lt only for whole numbers."""
        test = _TESTS.get(self.operator)
        return test is not None and test(labels.get(self.key), self.values)


Selector = tuple[Requirement, ...]
"""Labels match when every requirement holds; the empty selector matches everything."""


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether every requirement holds."""
    return all(requirement.holds(labels) for requirement in selector)


def _sign(value: str | None, bounds: tuple[str, ...]) -> int:
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
    "Gt": lambda value, values: _sign(value, values) > 0,
    "Lt": lambda value, values: _sign(value, values) < 0,
}


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A term of node affinity: its requirements on labels and on fields all hold. An empty term matches no node."""

    expressions: Selector = ()
    fields: Selector = ()


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods are meant: by label, in named namespaces and in those that `namespace_selector` matches.

    `selector` None means no pod at all; `namespace_selector` None means no namespace beyond those named.
    """

    selector: Selector | None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: Selector | None = None

    def sees(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Of a namespace's own labels the engine knows only its name."""
        if self.selector is None:
            return False
        return self._is_in(namespace) and matches(self.selector, labels)

    def _is_in(self, namespace: str) -> bool:
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and matches(self.namespace_selector, {NAMESPACE_NAME: namespace})


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A term of pod affinity or anti-affinity: near to, or apart from, these pods, as `topology_key` divides nodes."""

    pods: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint. `is_hard`: DoNotSchedule; else ScheduleAnyway."""

    topology_key: str
    max_skew: int
    pods: PodSelector
    is_hard: bool = True
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the machine itself."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS

    def conflicts_with(self, other: "HostPort") -> bool:
        """The same port and protocol, on addresses that overlap."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


@dataclass(frozen=True, slots=True)
class Conditions:
    """All of a pod's conditions but its node selector and tolerations.

    node_terms        required node affinity: one of the terms; None where there is none
    preferred_nodes   preferred node affinity: weight and term
    near, apart       required pod affinity and anti-affinity
    preferred_pods    preferred ones: weight (below zero: rather apart) and term
    claims            persistent volume claims, as namespace/name
    device_claims     claims on devices, as namespace/name
    """

    node_terms: tuple[NodeTerm, ...] | None = None
    preferred_nodes: tuple[tuple[int, NodeTerm], ...] = ()
    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[Spread, ...] = ()
    ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()
    device_claims: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def selectors(self) -> Iterator[PodSelector]:
        """Every selector by which this pod looks at pods."""
        yield from (term.pods for term in (*self.near, *self.apart))
        yield from (term.pods for _weight, term in self.preferred_pods)
        yield from (constraint.pods for constraint in self.spread)


NOTHING = Conditions()
