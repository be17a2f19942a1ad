"""Keep a gang close together in the network: which domains may hold it, which are filled first (`volcano-spec` §5.6).

A domain is worth more the fuller it gets; a node more the closer it is to what the gang already holds. Pods of other
gangs prefer nodes in domains that are well used, so that empty domains stay whole.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hekla.engine.columns import EPSILON, Mask, NodeTable, Vector
from hekla.engine.domains import Domain, Spread, Sums
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.model import TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.subgroups import SubGroup, subgroups

RowList = npt.NDArray[np.intp]
_HOLDS = ALLOCATED | {TaskStatus.PIPELINED}
_FULL = 100
_FADING = 0.8
_MOST_TO_EVICT_IN = 8


def open_session(session: Session, option: PluginOption) -> None:
    """Speak of domains, and of nodes where there are domains."""
    topology = _Topology(session, option)
    session.on_change.append(topology.follow)
    session.register(Point.HYPERNODE_GRADIENT, option, topology.gradient)
    session.register(Point.HYPERNODE_ORDER, option, topology.domain_scores)
    session.register(Point.DOMAIN_NODE_ORDER, option, topology.node_scores)
    if len(session.domains.all) > 1 and _is_on(option, "hypernode.binpack.normal-pod.enable"):
        session.register(Point.WIDE_NODE_ORDER, option, topology.ordinary)


class _Topology:
    """The plugin in one session."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._session, self._domains = session, session.domains
        self._weight = option.whole("weight", 1)
        self._weights = _weights(session, option)
        self._fading = option.number("hypernode.binpack.normal-pod.fading", _FADING)
        self._spreads: dict[Gang | SubGroup, Spread] = {}
        self._close: dict[int, Vector] = {}
        self._most = option.whole("hypernode.gradient.evict.max-hypernodes", _MOST_TO_EVICT_IN)

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self._domains, self._session.table)

    @cached_property
    def _homes(self) -> RowList:
        return np.array([home.at for home in self._domains.home], dtype=np.intp)

    # Which domains.

    def gradient(self, claim: Gang | SubGroup, domain: Domain, purpose: str) -> list[list[Domain]]:
        """By tier, the closest first; to evict in, the widest first, and no more than a few."""
        topology = claim.job.topology if isinstance(claim, Gang) else claim.topology
        if topology is None:
            return [[domain]]
        highest, root = self._domains.highest_tier(topology), domain
        held = self._held(claim)
        if held is not None:
            allowed = [one for one in held.ancestors() if one.tier <= highest]
            if not allowed or not (domain.lies_in(allowed[-1]) or allowed[-1].lies_in(domain)):
                return []
            root = domain if domain.lies_in(allowed[-1]) else allowed[-1]
        found = [one for one in root.below() if one.tier <= highest]
        least = self._least(claim) if held is None else None
        if least is not None:
            found = [one for one in found if self._has_room(one, least, purpose)]
        return _by_tier(found) if purpose == "allocate" else _widest(found, self._most)

    def _held(self, claim: Gang | SubGroup) -> Domain | None:
        """The domain that what has a place is spread over."""
        return self._spread(claim).domain()

    def _spread(self, claim: Gang | SubGroup) -> Spread:
        found = self._spreads.get(claim)
        if found is None:
            rows = self._session.table.row_of
            placed = (rows[m.node] for m in claim.members if m.status in _HOLDS and m.node in rows)
            found = self._spreads[claim] = Spread(self._domains, placed)
        return found

    def follow(self, member: Member, row: int, sign: int) -> None:
        """Keep up with places taken and given back."""
        if member.job.is_in_domains:
            for claim in (member.job, subgroups(member.job).of(member)):
                if claim in self._spreads:
                    self._spreads[claim].change(row, sign)

    def _least(self, claim: Gang | SubGroup) -> Vector | None:
        """What it needs at the very least."""
        gang = claim if isinstance(claim, Gang) else claim.gang
        if gang.minimum is not None and (isinstance(claim, Gang) or claim.is_whole):
            return gang.minimum
        pending = claim.pending()
        count = gang.job.min_available if isinstance(claim, Gang) else claim.least
        smallest: Vector = np.minimum.reduce([member.request for member in pending])
        return smallest * min(count, len(pending))

    def _has_room(self, domain: Domain, least: Vector, purpose: str) -> bool:
        sums, at = self._sums.catch_up(), domain.at
        rooms = (sums.whole[at],) if purpose == "evict" else (sums.whole[at] - sums.used[at], sums.future[at])
        return any(bool((least < room + EPSILON).all()) for room in rooms)

    def domain_scores(self, group: SubGroup, domains: Sequence[Domain]) -> Vector:
        """The used part, once the whole sub-group is there; among the best, where most of it already is."""
        sums, at = self._sums.catch_up(), [domain.at for domain in domains]
        scores = self._parts(group.request, sums.used[at], sums.whole[at])
        return self._with_shares(scores, group, np.array(at))

    def _with_shares(self, scores: Vector, group: SubGroup, at: RowList) -> Vector:
        """Those that tie for the best get the part of the sub-group that their domain holds on top."""
        best = scores == scores.max()
        if best.sum() > 1:
            scores[best] += self._spread(group).counts[at[best]] / len(group.members)
        return scores * _FULL * self._weight

    # Which nodes.

    def node_scores(self, member: Member, rows: RowList) -> Vector:
        """One in the domain that the sub-group holds, less the wider the domain that both lie in."""
        group = subgroups(member.job).of(member)
        held = self._held(group) if group.topology or member.job.job.topology else None
        if held is None or not len(rows):
            return np.zeros(len(rows))
        homes = self._homes[rows]
        return self._with_shares(self._closeness(held)[homes], group, homes)

    def _closeness(self, held: Domain) -> Vector:
        """How close each domain is to this one."""
        if held.at not in self._close:
            widest, closest = self._domains.top.tier, self._domains.lowest_tier
            near = np.zeros(len(self._domains.all))
            for around in [*held.ancestors()][::-1]:
                near[around.inside] = 1.0 if around is held else (widest - around.tier) / (widest - closest)
            self._close[held.at] = near
        return self._close[held.at]

    def ordinary(self, member: Member, table: NodeTable) -> Callable[[RowList], Vector] | None:
        """For pods of other gangs: the used parts of a node's domains; the wider the domain, the less it counts."""
        if member.job.is_in_domains:
            return None
        tiers = _by_tier(self._domains.all)
        faded = [self._fading ** (domains[0].tier - 1) for domains in tiers]
        domain_of = [_domain_by_row(domains, table) for domains in tiers]

        def score(rows: RowList) -> Vector:
            sums = self._sums.catch_up()
            parts = np.append(self._parts(member.request, sums.used, sums.whole), 1.0)
            total: Vector = sum(
                (fading * parts[at[rows]] for fading, at in zip(faded, domain_of, strict=True)), np.zeros(len(rows))
            )
            return total / sum(faded) * _FULL * self._weight

        return score

    def _parts(self, request: Vector, used: Vector, whole: Vector) -> Vector:
        """Per row the weighted used part after the request; nothing where it is more than all."""
        asked: Mask = (request > 0) & (self._weights > 0)
        after = used[:, asked] + request[asked]
        parts = np.divide(after, whole[:, asked], out=np.zeros_like(after), where=whole[:, asked] > 0)
        total: Vector = (parts * self._weights[asked]).sum(axis=1) / max(self._weights[asked].sum(), 1)
        return np.where((after > whole[:, asked]).any(axis=1), 0.0, total)


def _domain_by_row(domains: Sequence[Domain], table: NodeTable) -> RowList:
    """For each row the domain of this tier that it is in; -1: none."""
    found = np.full(len(table), -1, dtype=np.intp)
    for domain in domains:
        found[domain.rows] = domain.at
    return found


def _by_tier(domains: Sequence[Domain]) -> list[list[Domain]]:
    tiers = sorted({domain.tier for domain in domains})
    return [sorted((d for d in domains if d.tier == tier), key=lambda d: d.name) for tier in tiers]


def _widest(domains: Sequence[Domain], most: int) -> list[list[Domain]]:
    chosen = sorted(domains, key=lambda domain: (-domain.tier, domain.name))[:most]
    return _by_tier(chosen)[::-1]


def _is_on(option: PluginOption, name: str) -> bool:
    return str(option.arguments.get(name, True)).lower() not in ("false", "0", "f")


def _weights(session: Session, option: PluginOption) -> Vector:
    named = {"cpu": option.whole("hypernode.binpack.cpu", 1), "memory": option.whole("hypernode.binpack.memory", 1)}
    for name in str(option.arguments.get("hypernode.binpack.resources", "")).split(","):
        if name.strip():
            named[name.strip()] = option.whole(f"hypernode.binpack.resources.{name.strip()}", 1)
    return np.array([float(w if (w := named.get(name, 0)) >= 0 else 1) for name in session.dimensions.names])
