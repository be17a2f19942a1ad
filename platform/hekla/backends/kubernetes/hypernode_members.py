"""Which hypernodes hold each node, from the members that Volcano's HyperNode objects name.

A hypernode selects nodes, and hypernodes of a lower tier; so loops have no effect. What is wrong in an object is left
out and reported as a fault: the other objects count.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hekla.backends.kubernetes.api import Json
from hekla.domain.network_topology import MAX_TIER, HyperNodeLevel
from hekla.domain.validation import is_text
from hekla.engine.constraints import Selector, matches
from hekla.engine.pod_objects import label_selector
from hekla.lib.regular_expressions import UnsupportedExpression, search_all

MAX_HYPERNODES, MAX_LEVELS, MAX_NAME = 5000, 16, 253
"""Hypernodes of a cluster; hypernodes that hold one node; characters of a name."""
_MAX_FAULTS = 20
NodeLabels = Mapping[str, Mapping[str, str]]
"""The labels of nodes, by their names."""
Levels = Mapping[str, tuple[HyperNodeLevel, ...]]
"""The hypernodes that hold each node, from the lowest tier to the highest. Equal ones are the very same object."""


class HyperNodeProblem(StrEnum):
    """What is wrong with a HyperNode object."""

    TOO_MANY = "too_many"  # of all objects, or around one of its nodes
    INVALID = "invalid"
    MEMBER = "member"  # a hypernode that does not exist, or whose tier is not lower
    EXPRESSION = "expression"  # cannot be read, or is too complex
    OVERLAP = "overlap"  # a node is in another hypernode of the same tier too


@dataclass(frozen=True, slots=True)
class HyperNodeFault:
    """A problem of the HyperNode object with this name."""

    problem: HyperNodeProblem
    name: str

    def __str__(self) -> str:
        return f"{self.problem} {self.name}"


@dataclass(frozen=True, slots=True)
class HyperNodeSpec:
    """A HyperNode object: its members by name, by expression on names, by labels, and the hypernodes among them."""

    name: str
    tier: int
    tier_name: str
    nodes: frozenset[str]
    expressions: frozenset[str]
    selectors: frozenset[Selector]
    has_invalid_selector: bool
    children: frozenset[str]


@dataclass(frozen=True, slots=True)
class HyperNodeSpecs:
    """The HyperNode objects of a cluster, by tier and name, and what is wrong with them."""

    specs: tuple[HyperNodeSpec, ...] = ()
    faults: tuple[HyperNodeFault, ...] = ()

    @property
    def expressions(self) -> frozenset[str]:
        """All expressions that select nodes by name."""
        return frozenset(expression for spec in self.specs for expression in spec.expressions)

    @property
    def label_keys(self) -> frozenset[str]:
        """The keys of all labels that select nodes."""
        return frozenset(one.key for spec in self.specs for selector in spec.selectors for one in selector)


@dataclass(frozen=True, slots=True)
class Topology:
    """What HyperNode objects say about nodes, and what is wrong with them."""

    levels: Levels
    faults: tuple[HyperNodeFault, ...] = ()


def parse_objects(objects: Iterable[Json]) -> HyperNodeSpecs:
    """HyperNode objects of a cluster, as its server lists them."""
    found: list[HyperNodeSpec] = []
    faults: list[HyperNodeFault] = []
    for body in objects:
        name = str(body["metadata"]["name"])[:MAX_NAME]
        if len(found) == MAX_HYPERNODES:
            faults.append(HyperNodeFault(HyperNodeProblem.TOO_MANY, name))
            break
        try:
            found.append(_parsed(name, body["spec"]))
        except (KeyError, TypeError, AttributeError, ValueError):
            faults.append(HyperNodeFault(HyperNodeProblem.INVALID, name))
    return HyperNodeSpecs(tuple(sorted(found, key=lambda spec: (spec.tier, spec.name))), tuple(faults))


def _parsed(name: str, spec: Json) -> HyperNodeSpec:
    """Raises ValueError, and others if the object has not the form that its definition demands."""
    tier, tier_name, members = spec["tier"], spec.get("tierName") or "", spec.get("members") or ()
    if not (isinstance(tier, int) and 0 <= tier <= MAX_TIER and len(tier_name) <= MAX_NAME and is_text(tier_name)):
        raise ValueError("The tier is not valid")
    of_nodes = [one["selector"] for one in members if one["type"] == "Node"]
    selectors = {label_selector(one["labelMatch"]) for one in of_nodes if one.get("labelMatch")}
    return HyperNodeSpec(
        name,
        tier,
        tier_name,
        nodes=frozenset(_exact(of_nodes)),
        expressions=frozenset(str(one["regexMatch"]["pattern"]) for one in of_nodes if one.get("regexMatch")),
        selectors=frozenset(one for one in selectors if one),
        has_invalid_selector=None in selectors,
        children=frozenset(_exact(one["selector"] for one in members if one["type"] == "HyperNode")),
    )


def _exact(selectors: Iterable[Json]) -> Iterator[str]:
    """The names in these selectors. A hypernode cannot be selected otherwise."""
    return (str(one["exactMatch"]["name"]) for one in selectors if one.get("exactMatch"))


class HyperNodeResolver:
    """Finds the nodes of hypernodes. What expressions match is kept from one call to the next."""

    def __init__(self) -> None:
        self._matched: dict[str, frozenset[str] | None] = {}
        """By expression; None if it cannot be matched."""
        self._names: frozenset[str] = frozenset()
        """The names that were compared."""

    def resolve(self, objects: HyperNodeSpecs, nodes: NodeLabels) -> Topology:
        """The hypernodes that hold each of these nodes."""
        self._match(objects.expressions, frozenset(nodes))
        index, tiers = _LabelIndex(nodes), {spec.name: spec.tier for spec in objects.specs}
        members: dict[str, set[str]] = {}
        paths, faults = _Paths(nodes), list(objects.faults)
        for spec in objects.specs:
            lower = [one for one in spec.children if tiers.get(one, spec.tier) < spec.tier]
            found = set(spec.nodes & self._names).union(
                *(members[one] for one in lower),
                *(self._matched[one] or () for one in spec.expressions),
                *map(index.select, spec.selectors),
            )
            members[spec.name] = found - paths.full
            problems = {
                HyperNodeProblem.INVALID: spec.has_invalid_selector,
                HyperNodeProblem.MEMBER: len(lower) < len(spec.children),
                HyperNodeProblem.EXPRESSION: any(self._matched[one] is None for one in spec.expressions),
                HyperNodeProblem.TOO_MANY: not found.isdisjoint(paths.full),
                HyperNodeProblem.OVERLAP: paths.add(spec, members[spec.name]),
            }
            faults += (HyperNodeFault(problem, spec.name) for problem, is_there in problems.items() if is_there)
        return Topology(paths.levels, tuple(faults[:_MAX_FAULTS]))

    def _match(self, expressions: Collection[str], names: frozenset[str]) -> None:
        """Compare with new names, or all if the expression is new."""
        new = names - self._names
        before, self._matched, self._names = self._matched, {}, names
        for one in expressions:
            known = before.get(one, frozenset())
            found = None if known is None else _search(one, new if one in before else names)
            self._matched[one] = None if known is None or found is None else (known & names) | found


def _search(expression: str, names: frozenset[str]) -> frozenset[str] | None:
    """The names in which the expression occurs; None if it cannot be matched."""
    try:
        return search_all(expression, names)
    except UnsupportedExpression:
        return None


class _Paths:
    """The hypernodes that hold each node, added from the lowest tier to the highest."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.levels: dict[str, tuple[HyperNodeLevel, ...]] = dict.fromkeys(nodes, ())
        self.full: set[str] = set()
        """The nodes in as many hypernodes as one may be."""
        self._shared: dict[tuple[HyperNodeLevel, ...], tuple[HyperNodeLevel, ...]] = {}

    def add(self, spec: HyperNodeSpec, members: Iterable[str]) -> bool:
        """Add a hypernode with these nodes. Returns whether one of them is in another of the same tier."""
        level, has_overlap = HyperNodeLevel(spec.name, spec.tier, spec.tier_name), False
        for name in members:
            before = self.levels[name]
            has_overlap = has_overlap or bool(before and before[-1].tier == spec.tier)
            path = (*before, level)
            self.levels[name] = self._shared.setdefault(path, path)
            if len(path) == MAX_LEVELS:
                self.full.add(name)
        return has_overlap


class _LabelIndex:
    """The nodes that have a label."""

    def __init__(self, nodes: NodeLabels) -> None:
        self._nodes = nodes
        self._with: dict[tuple[str, str], set[str]] = defaultdict(set)
        for name, labels in nodes.items():
            for label in labels.items():
                self._with[label].add(name)

    def select(self, selector: Selector) -> set[str]:
        """The nodes that meet all requirements."""
        named = [
            set[str]().union(*(self._with.get((one.key, value), ()) for value in one.values))
            for one in selector
            if one.operator == "In"
        ]
        candidates = set.intersection(*named) if named else self._nodes.keys()
        return {name for name in candidates if matches(selector, self._nodes[name])}
