"""Network domains: Volcano's hypernodes as a tree over rows of the node table (`volcano-spec` §1.4, §5.6).

A domain lies in the smallest domain of a higher tier that holds all its nodes; what lies in none lies in the whole
cluster, which is a domain of a tier of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import NodeTable
from hekla.engine.model import HyperNode, NetworkTopology

TOP = "<cluster-top-hypernode>"


class Domain:
    """A hypernode in the session. `rows`: its nodes, ascending."""

    def __init__(self, name: str, tier: int, tier_name: str, rows: npt.NDArray[np.intp]) -> None:
        self.name, self.tier, self.tier_name, self.rows = name, tier, tier_name, rows
        self.at = 0
        """Its index in `Domains.all`."""
        self.parent: Domain | None = None
        self.children: list[Domain] = []

    def ancestors(self) -> Iterator["Domain"]:
        """Itself, then what it lies in, up to the whole cluster."""
        domain: Domain | None = self
        while domain is not None:
            yield domain
            domain = domain.parent

    def below(self) -> Iterator["Domain"]:
        """Itself and all that lies in it."""
        yield self
        for child in self.children:
            yield from child.below()

    @cached_property
    def inside(self) -> npt.NDArray[np.intp]:
        """The indices of itself and of all that lies in it."""
        return np.array([domain.at for domain in self.below()], dtype=np.intp)

    def lies_in(self, other: "Domain") -> bool:
        return any(domain is other for domain in self.ancestors())


class Domains:
    """All domains of a session: those that were named by tier and name, and last the whole cluster."""

    def __init__(self, hyper_nodes: Sequence[HyperNode], table: NodeTable) -> None:
        self.lowest_tier = min((node.tier for node in hyper_nodes), default=1)
        highest = max((node.tier for node in hyper_nodes), default=0)
        self.top = Domain(TOP, highest + 1, "", np.arange(len(table), dtype=np.intp))
        named = [_domain(node, table) for node in sorted(hyper_nodes, key=lambda node: (node.tier, node.name))]
        self.all = [*named, self.top]
        for at, domain in enumerate(self.all):
            domain.at = at
        self.home = [self.top] * len(table)
        """For each row the lowest domain that it is in."""
        self._link()

    def _link(self) -> None:
        """Parents and homes, from the widest domain to the narrowest."""
        around = list(self.home)
        for domain in reversed(self.all[:-1]):
            parents = {id(around[row]): around[row] for row in domain.rows}
            around_all = next(iter(parents.values())) if len(parents) == 1 else self.top
            domain.parent = around_all if around_all.tier > domain.tier else self.top
            domain.parent.children.insert(0, domain)
            for row in domain.rows:
                around[row] = domain
        self.home = around

    def highest_tier(self, topology: NetworkTopology | None) -> int:
        """The tier up to which a topology allows to spread."""
        if topology is None or not topology.is_hard:
            return self.top.tier
        if topology.highest_tier_name:
            tiers = (domain.tier for domain in self.all[:-1] if domain.tier_name == topology.highest_tier_name)
            return next(tiers, self.top.tier)
        return self.top.tier if topology.highest_tier is None else topology.highest_tier


class Sums:
    """What the nodes of each domain have together, one row a domain; kept up with the node table."""

    def __init__(self, domains: Domains, table: NodeTable) -> None:
        self._table, self._seen = table, len(table.touched)
        self._around: list[list[int]] = [[] for _ in range(len(table))]
        for domain in domains.all:
            for row in domain.rows.tolist():
                self._around[row].append(domain.at)
        self._used, self._future = table.used.copy(), table.future()
        self.whole = np.array([table.allocatable[domain.rows].sum(axis=0) for domain in domains.all])
        self.used = np.array([table.used[domain.rows].sum(axis=0) for domain in domains.all])
        self.future = np.array([self._future[domain.rows].sum(axis=0) for domain in domains.all])

    def catch_up(self) -> "Sums":
        """Take in what was touched since the last look."""
        touched = self._table.touched
        for row in {row for row, _ in touched[self._seen :]}:
            used, future = self._table.used[row], self._table.future(slice(row, row + 1))[0]
            self.used[self._around[row]] += used - self._used[row]
            self.future[self._around[row]] += future - self._future[row]
            self._used[row], self._future[row] = used, future
        self._seen = len(touched)
        return self


class Spread:
    """How many tasks of a gang, or of a part of it, each domain holds."""

    def __init__(self, domains: Domains, rows: Iterable[int]) -> None:
        self._domains = domains
        self.counts = np.zeros(len(domains.all))
        for row in rows:
            self.change(row, 1)

    def change(self, row: int, sign: int) -> None:
        """One more, or one less, on the node of this row."""
        for domain in self._domains.home[row].ancestors():
            self.counts[domain.at] += sign

    def domain(self) -> Domain | None:
        """The lowest domain that holds them all; None where there are none."""
        domain, total = self._domains.top, self.counts[-1]
        if not total:
            return None
        while (inner := next((d for d in domain.children if self.counts[d.at] == total), None)) is not None:
            domain = inner
        return domain


def _domain(node: HyperNode, table: NodeTable) -> Domain:
    rows = sorted(table.row_of[name] for name in node.nodes if name in table.row_of)
    return Domain(node.name, node.tier, node.tier_name, np.array(rows, dtype=np.intp))
