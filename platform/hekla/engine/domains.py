"""Network domains: Volcano's hypernodes as a tree over rows of the node table (`volcano-spec` §1.4, §5.6).

A domain lies in the smallest domain of a higher tier that holds all its nodes; what lies in none lies in the whole
cluster, which is a domain of a tier of its own.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import NodeTable
from hekla.engine.model import HyperNode, NetworkTopology

TOP = "<cluster-top-hypernode>"


class Domain:
    """A hypernode in the session. `rows`: its nodes, ascending."""

    __slots__ = ("children", "name", "parent", "rows", "tier", "tier_name")

    def __init__(self, name: str, tier: int, tier_name: str, rows: npt.NDArray[np.intp]) -> None:
        self.name, self.tier, self.tier_name, self.rows = name, tier, tier_name, rows
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

    def lies_in(self, other: "Domain") -> bool:
        return any(domain is other for domain in self.ancestors())


class Domains:
    """All domains of a session."""

    def __init__(self, hyper_nodes: Sequence[HyperNode], table: NodeTable) -> None:
        self.lowest_tier = min((node.tier for node in hyper_nodes), default=1)
        highest = max((node.tier for node in hyper_nodes), default=0)
        self.top = Domain(TOP, highest + 1, "", np.arange(len(table), dtype=np.intp))
        self.all = [_domain(node, table) for node in sorted(hyper_nodes, key=lambda node: (node.tier, node.name))]
        self.home = [self.top] * len(table)
        """For each row the lowest domain that it is in."""
        self._link()

    def _link(self) -> None:
        """Parents and homes, from the widest domain to the narrowest."""
        around = list(self.home)
        for domain in reversed(self.all):
            parents = {id(around[row]): around[row] for row in domain.rows}
            around_all = next(iter(parents.values())) if len(parents) == 1 else self.top
            domain.parent = around_all if around_all.tier > domain.tier else self.top
            domain.parent.children.insert(0, domain)
            for row in domain.rows:
                around[row] = domain
        self.home = around

    def common(self, rows: Iterable[int]) -> Domain | None:
        """The lowest domain that holds all these rows; None for no rows."""
        found: Domain | None = None
        for home in {id(self.home[row]): self.home[row] for row in rows}.values():
            found = home if found is None else self.meet(found, home)
        return found

    def meet(self, left: Domain, right: Domain) -> Domain:
        """The lowest domain that both lie in."""
        above = {id(domain) for domain in left.ancestors()}
        return next((domain for domain in right.ancestors() if id(domain) in above), self.top)

    def highest_tier(self, topology: NetworkTopology | None) -> int:
        """The tier up to which a topology allows to spread."""
        if topology is None or not topology.is_hard:
            return self.top.tier
        if topology.highest_tier_name:
            tiers = (domain.tier for domain in self.all if domain.tier_name == topology.highest_tier_name)
            return next(tiers, self.top.tier)
        return self.top.tier if topology.highest_tier is None else topology.highest_tier


def _domain(node: HyperNode, table: NodeTable) -> Domain:
    rows = sorted(table.row_of[name] for name in node.nodes if name in table.row_of)
    return Domain(node.name, node.tier, node.tier_name, np.array(rows, dtype=np.intp))
