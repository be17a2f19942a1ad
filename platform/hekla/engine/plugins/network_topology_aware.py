"""Keeps a job close together in the network: allowed hypernodes, and scores (`volcano-spec` §5.6).

A hypernode scores higher, the fuller it gets; a node, the closer it is to the placed pods of the job. Pods of jobs
without hypernodes prefer nodes in well-used hypernodes, so that empty hypernodes stay whole.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import EPSILON, Mask, NodeTable, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.hypernodes import HyperNodeInfo, HyperNodeTotals, PodDistribution
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.subjobs import SubJobInfo, subjobs_of

RowList = npt.NDArray[np.intp]
_HOLDS = ALLOCATED | {PodStatus.PIPELINED}
_FULL = 100
_FADING = 0.8
_MOST_TO_EVICT_IN = 8

NEEDS = (
    Need(Input.HYPERNODES, Lack.NOTHING),
    Need(Input.JOB_TOPOLOGY, Lack.PART, gettext_noop("No job is placed within one hypernode.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Register functions about hypernodes, and about nodes if there are hypernodes."""
    topology = _Topology(session, option)
    session.on_change.append(topology.update)
    session.register(ExtensionPoint.HYPERNODE_GRADIENT, option, topology.gradient)
    session.register(ExtensionPoint.HYPERNODE_ORDER, option, topology.domain_scores)
    session.register(ExtensionPoint.DOMAIN_NODE_ORDER, option, topology.node_scores)
    if len(session.hypernodes.all) > 1 and _is_on(option, "hypernode.binpack.normal-pod.enable"):
        session.register(ExtensionPoint.WIDE_NODE_ORDER, option, topology.ordinary)


class _Topology:
    """The plugin in one session."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._session, self._hypernodes = session, session.hypernodes
        self._weight = option.whole("weight", 1)
        self._weights = _weights(session, option)
        self._fading = option.number("hypernode.binpack.normal-pod.fading", _FADING)
        self._spreads: dict[JobInfo | SubJobInfo, PodDistribution] = {}
        self._close: dict[int, Vector] = {}
        self._most = option.whole("hypernode.gradient.evict.max-hypernodes", _MOST_TO_EVICT_IN)

    @cached_property
    def _sums(self) -> HyperNodeTotals:
        return HyperNodeTotals(self._hypernodes, self._session.table)

    @cached_property
    def _leaf_indices(self) -> RowList:
        return np.array([leaf.index for leaf in self._hypernodes.leaf_of_row], dtype=np.intp)

    # Hypernodes.

    def gradient(self, job: JobInfo | SubJobInfo, hypernode: HyperNodeInfo, purpose: str) -> list[list[HyperNodeInfo]]:
        """Candidates by tier, the closest first; for evictions the widest first, and at most `_most`."""
        topology = job.group.topology if isinstance(job, JobInfo) else job.topology
        if topology is None:
            return [[hypernode]]
        highest, root = self._hypernodes.highest_tier(topology), hypernode
        held = self._held(job)
        if held is not None:
            allowed = [one for one in held.ancestors() if one.tier <= highest]
            if not allowed or not (hypernode.is_within(allowed[-1]) or allowed[-1].is_within(hypernode)):
                return []
            root = hypernode if hypernode.is_within(allowed[-1]) else allowed[-1]
        found = [one for one in root.descendants() if one.tier <= highest]
        least = self._min_resources(job) if held is None else None
        if least is not None:
            found = [one for one in found if self._has_room(one, least, purpose)]
        return _by_tier(found) if purpose == "allocate" else _widest(found, self._most)

    def _held(self, job: JobInfo | SubJobInfo) -> HyperNodeInfo | None:
        """The lowest hypernode that holds all placed pods; None if there are none."""
        return self._spread(job).lowest_common()

    def _spread(self, job: JobInfo | SubJobInfo) -> PodDistribution:
        found = self._spreads.get(job)
        if found is None:
            rows = self._session.table.row_of
            placed = (rows[m.node] for m in job.pods if m.status in _HOLDS and m.node in rows)
            found = self._spreads[job] = PodDistribution(self._hypernodes, placed)
        return found

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Follow placements and removals."""
        if pod.job.uses_hypernodes:
            for job in (pod.job, subjobs_of(pod.job).of_pod(pod)):
                if job in self._spreads:
                    self._spreads[job].add(row, sign)

    def _min_resources(self, job: JobInfo | SubJobInfo) -> Vector | None:
        """The least resources that it needs to start, over the dimensions."""
        whole = job if isinstance(job, JobInfo) else job.job
        if whole.min_resources is not None and (isinstance(job, JobInfo) or job.is_whole):
            return whole.min_resources
        pending = job.pending()
        count = job.group.min_available if isinstance(job, JobInfo) else job.min_available
        smallest: Vector = np.minimum.reduce([pod.request for pod in pending])
        return smallest * min(count, len(pending))

    def _has_room(self, hypernode: HyperNodeInfo, least: Vector, purpose: str) -> bool:
        sums, at = self._sums.refresh(), hypernode.index
        rooms = (
            (sums.allocatable[at],)
            if purpose == "evict"
            else (sums.allocatable[at] - sums.used[at], sums.future_idle[at])
        )
        return any(bool((least < room + EPSILON).all()) for room in rooms)

    def domain_scores(self, subjob: SubJobInfo, hypernodes: Sequence[HyperNodeInfo]) -> Vector:
        """The used part with the whole sub-job; ties for the best are broken by the part that is there already."""
        sums, at = self._sums.refresh(), [hypernode.index for hypernode in hypernodes]
        scores = self._parts(subjob.request, sums.used[at], sums.allocatable[at])
        return self._with_shares(scores, subjob, np.array(at))

    def _with_shares(self, scores: Vector, subjob: SubJobInfo, at: RowList) -> Vector:
        """Add to the best scores, if several tie, the part of the sub-job that the hypernode holds."""
        best = scores == scores.max()
        if best.sum() > 1:
            scores[best] += self._spread(subjob).counts[at[best]] / len(subjob.pods)
        return scores * _FULL * self._weight

    # Nodes.

    def node_scores(self, pod: PodInfo, rows: RowList) -> Vector:
        """1 in the hypernode that the sub-job holds; less, the wider the hypernode that contains both."""
        subjob = subjobs_of(pod.job).of_pod(pod)
        held = self._held(subjob) if subjob.topology or pod.job.group.topology else None
        if held is None or not len(rows):
            return np.zeros(len(rows))
        leaves = self._leaf_indices[rows]
        return self._with_shares(self._closeness(held)[leaves], subjob, leaves)

    def _closeness(self, held: HyperNodeInfo) -> Vector:
        """How close each hypernode is to this one, from 0 to 1."""
        if held.index not in self._close:
            widest, closest = self._hypernodes.top.tier, self._hypernodes.lowest_tier
            near = np.zeros(len(self._hypernodes.all))
            for around in [*held.ancestors()][::-1]:
                near[around.descendant_indices] = 1.0 if around is held else (widest - around.tier) / (widest - closest)
            self._close[held.index] = near
        return self._close[held.index]

    def ordinary(self, pod: PodInfo, table: NodeTable) -> Callable[[RowList], Vector] | None:
        """For pods of other jobs: the used parts of a node's hypernodes; the wider, the less it counts."""
        if pod.job.uses_hypernodes:
            return None
        tiers = _by_tier(self._hypernodes.all)
        faded = [self._fading ** (hypernodes[0].tier - 1) for hypernodes in tiers]
        hypernode_of = [_hypernode_by_row(hypernodes, table) for hypernodes in tiers]

        def score(rows: RowList) -> Vector:
            sums = self._sums.refresh()
            parts = np.append(self._parts(pod.request, sums.used, sums.allocatable), 1.0)
            total: Vector = sum(
                (fading * parts[at[rows]] for fading, at in zip(faded, hypernode_of, strict=True)), np.zeros(len(rows))
            )
            return total / sum(faded) * _FULL * self._weight

        return score

    def _parts(self, request: Vector, used: Vector, whole: Vector) -> Vector:
        """Per row: the weighted used part after the request; 0 if the request does not fit."""
        requested: Mask = (request > 0) & (self._weights > 0)
        after = used[:, requested] + request[requested]
        parts = np.divide(after, whole[:, requested], out=np.zeros_like(after), where=whole[:, requested] > 0)
        total: Vector = (parts * self._weights[requested]).sum(axis=1) / max(self._weights[requested].sum(), 1)
        return np.where((after > whole[:, requested]).any(axis=1), 0.0, total)


def _hypernode_by_row(hypernodes: Sequence[HyperNodeInfo], table: NodeTable) -> RowList:
    """Per row: its hypernode among these; -1: none."""
    found = np.full(len(table), -1, dtype=np.intp)
    for hypernode in hypernodes:
        found[hypernode.rows] = hypernode.index
    return found


def _by_tier(hypernodes: Sequence[HyperNodeInfo]) -> list[list[HyperNodeInfo]]:
    tiers = sorted({hypernode.tier for hypernode in hypernodes})
    return [sorted((d for d in hypernodes if d.tier == tier), key=lambda d: d.name) for tier in tiers]


def _widest(hypernodes: Sequence[HyperNodeInfo], most: int) -> list[list[HyperNodeInfo]]:
    chosen = sorted(hypernodes, key=lambda hypernode: (-hypernode.tier, hypernode.name))[:most]
    return _by_tier(chosen)[::-1]


def _is_on(option: PluginOption, name: str) -> bool:
    return str(option.arguments.get(name, True)).lower() not in ("false", "0", "f")


def _weights(session: Session, option: PluginOption) -> Vector:
    named = {"cpu": option.whole("hypernode.binpack.cpu", 1), "memory": option.whole("hypernode.binpack.memory", 1)}
    for name in str(option.arguments.get("hypernode.binpack.resources", "")).split(","):
        if name.strip():
            named[name.strip()] = option.whole(f"hypernode.binpack.resources.{name.strip()}", 1)
    return np.array([float(w if (w := named.get(name, 0)) >= 0 else 1) for name in session.dimensions.names])
