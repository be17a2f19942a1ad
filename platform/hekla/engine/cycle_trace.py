"""A session that notes what the actions of a cycle do, and for some jobs how nodes and victims were judged.

The cycle is the real one: the session calls the same functions and returns the same results. The parts of a score are
found by asking each plugin alone (`NodeFit` with the functions of one plugin); they add up to the score that decided.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from hekla.engine.columns import EPSILON, Mask, Vector
from hekla.engine.cycle import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.hypernodes import HyperNodeInfo
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import ClusterState, PodStatus
from hekla.engine.node_fit import NodeFit
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Call, Session
from hekla.engine.victim_selection import VictimSelection

MAX_EXAMINATIONS, MAX_NODES, MAX_VICTIMS = 12, 60, 400
"""Per traced job: how many pods are explained, nodes of each, and candidates for eviction."""
_ROUNDING, _EXTENDER = 1e-6, "extender"
_ADMITTED, _TRIED, _PLACED, _PROMISED, _EVICTED = "admitted", "tried", "placed", "promised", "evicted"


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """How a node was judged for a pod. `scores`: by plugin; `total`: their sum, None if the node was no candidate.

    `vetoes`: the plugins that refused it, with their reasons; `short`: resources of which it has too little.
    """

    node: str
    total: float | None
    scores: Mapping[str, float]
    vetoes: tuple[tuple[str, str], ...]
    short: tuple[str, ...]
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class PodExamination:
    """The judgement of all nodes for one pod, when an action looked for a node. `nodes`: the best ones, then refused
    ones, `MAX_NODES` at most. `candidates`: how many nodes were candidates; `has_room_now`: else they will have room.
    `refused`: the number of nodes by plugin and reason, each node by its first.
    """

    action: str
    pod: str
    node_count: int
    candidates: int
    has_room_now: bool
    nodes: tuple[NodeVerdict, ...]
    refused: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class VictimVerdict:
    """A pod that was considered as a victim. `spared_by`: the plugin that did not allow it; empty if none spoke."""

    action: str
    pod_of: str
    victim: str
    job: str
    node: str
    is_allowed: bool
    spared_by: str


@dataclass
class CycleTrace:
    """What a cycle did. `steps`: by action and job, how many pods were tried, placed, promised and evicted."""

    traced: frozenset[str] = frozenset()
    steps: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    examinations: dict[str, list[PodExamination]] = field(default_factory=dict)
    victims: dict[str, list[VictimVerdict]] = field(default_factory=dict)

    def restart(self) -> None:
        """Forget everything: the cycle starts again without a plugin that failed."""
        for found in (self.steps, self.examinations, self.victims):
            found.clear()

    def count(self, action: str, job: str, what: str, number: int = 1) -> None:
        """Note that an action did something to a pod of a job, or undid it."""
        self.steps.setdefault((action, job), Counter())[what] += number


def traced_cycle(
    state: ClusterState, policy: SchedulerPolicy, now: float, call: Call | None = None, *, traced: Sequence[str] = ()
) -> tuple[Decisions, CycleTrace]:
    """Run a cycle and note what it does. `traced`: uids of the jobs to explain."""
    trace = CycleTrace(frozenset(traced))
    return cycle(state, policy, now, call, session_class=partial(_TracedSession, trace)), trace


class _TracedSession(Session):
    """Notes each step; see the module."""

    def __init__(
        self, trace: CycleTrace, cache: SchedulerCache, policy: SchedulerPolicy, now: float, call: Call | None = None
    ) -> None:
        super().__init__(cache, policy, now, call)
        self._trace = trace
        self._explained: set[tuple[str, object]] = set()
        trace.restart()

    def admit(self, job: JobInfo) -> None:
        super().admit(job)
        self._trace.count(self.action, job.group.uid, _ADMITTED)

    def place(self, pod: PodInfo, row: int, status: PodStatus) -> None:
        super().place(pod, row, status)
        self._trace.count(self.action, pod.job.group.uid, _PROMISED if status is PodStatus.PIPELINED else _PLACED)

    def unplace(self, pod: PodInfo) -> None:
        what = _PROMISED if pod.status is PodStatus.PIPELINED else _PLACED
        super().unplace(pod)
        self._trace.count(self.action, pod.job.group.uid, what, -1)

    def evict(self, pod: PodInfo) -> None:
        super().evict(pod)
        self._trace.count(self.action, pod.job.group.uid, _EVICTED)

    def unevict(self, pod: PodInfo) -> None:
        super().unevict(pod)
        self._trace.count(self.action, pod.job.group.uid, _EVICTED, -1)

    def best_node(self, pod: PodInfo, within: Mask | None = None) -> tuple[int, bool] | None:
        best = super().best_node(pod, within)
        self._trace.count(self.action, pod.job.group.uid, _TRIED)
        if self._is_to_explain(pod):
            self._examine(pod, best, {})
        return best

    def best_node_in(self, pod: PodInfo, hypernode: HyperNodeInfo) -> tuple[int, bool] | None:
        best = super().best_node_in(pod, hypernode)
        self._trace.count(self.action, pod.job.group.uid, _TRIED)
        if self._is_to_explain(pod):
            self._examine(pod, best, self._domain_scores(pod, hypernode))
        return best

    def select_victims(self, point: ExtensionPoint, pod: PodInfo, candidates: Sequence[PodInfo]) -> VictimSelection:
        found = super().select_victims(point, pod, candidates)
        if pod.job.group.uid in self._trace.traced:
            self._note_victims(pod.job, pod.spec.name, candidates, found, partial(self._sparing, point, pod))
        return found

    def select_gang_victims(self, job: JobInfo, candidates: Sequence[PodInfo], action: str) -> VictimSelection:
        found = super().select_gang_victims(job, candidates, action)
        if job.group.uid in self._trace.traced:
            self._note_victims(job, "", candidates, found, lambda these: self._sparing_gang(job, action, these))
        return found

    # Nodes.

    def _is_to_explain(self, pod: PodInfo) -> bool:
        """Whether this pod is the first of its class in this action, and of a traced job."""
        uid, key = pod.job.group.uid, (self.action, (pod.job.group.uid, self.class_of(pod)))
        if uid not in self._trace.traced or key in self._explained:
            return False
        self._explained.add(key)
        return len(self._trace.examinations.get(uid, ())) < MAX_EXAMINATIONS

    def _plugins(self) -> list[str]:
        """The plugins that can be asked again: extenders cannot, since their answers were recorded once."""
        names = dict.fromkeys(option.name for tier in self.policy.tiers for option in tier)
        return [name for name in names if name != _EXTENDER]

    def _functions_of(self, plugin: str, point: ExtensionPoint) -> list[Callable[..., Any]]:
        return [function for name, function in chain.from_iterable(self.named_functions(point)) if name == plugin]

    def _examine(self, pod: PodInfo, best: tuple[int, bool] | None, more: Mapping[str, Vector]) -> None:
        whole = self.node_fit(pod)
        mask, is_now = whole.candidates()
        alone = {name: NodeFit(pod, self.table, partial(self._functions_of, name)) for name in self._plugins()}
        scores = {name: fit.scores(mask).copy() for name, fit in alone.items()}
        total = whole.scores(mask).copy()
        for name, added in more.items():
            scores[name] = scores[name] + added if name in scores else added
            total += added
        rest = total - sum(scores.values(), np.zeros(len(total)))
        if np.abs(rest[mask]).max(initial=0.0) > _ROUNDING:
            scores[_EXTENDER] = rest
        vetoes = [(name, one) for name, fit in alone.items() for one in fit.refusals()]
        own = [(_EXTENDER, one) for one in whole.refusals() if not any(_is_same(one, other) for _name, other in vetoes)]
        vetoes += own
        short = self._short(pod)
        rows = [*self._best_rows(mask, total, best), *self._refused_rows(mask)][:MAX_NODES]
        nodes = tuple(
            NodeVerdict(
                self.table.nodes[row].name,
                float(total[row]) if mask[row] else None,
                {name: float(one[row]) for name, one in scores.items() if mask[row] and one[mask].any()},
                tuple((name, one.reason) for name, one in vetoes if one.mask[row]),
                tuple(name for name, lacks in short.items() if lacks[row]),
                best is not None and row == best[0],
            )
            for row in rows
        )
        counts = _first_refusals(mask, vetoes, short)
        found = PodExamination(self.action, pod.spec.name, len(self.table), int(mask.sum()), is_now, nodes, counts)
        self._trace.examinations.setdefault(pod.job.group.uid, []).append(found)

    def _short(self, pod: PodInfo) -> dict[str, Mask]:
        """By resource, the rows that will not have enough of it even when what is being released is free."""
        future = self.table.future_idle()
        found = {
            name: pod.request[at] > future[:, at] + EPSILON
            for at, name in enumerate(self.dimensions.names)
            if pod.request[at] > 0
        }
        return {name: lacks for name, lacks in found.items() if lacks.any()}

    def _best_rows(self, mask: Mask, total: Vector, best: tuple[int, bool] | None) -> list[int]:
        chosen = [] if best is None else [best[0]]
        rows = np.flatnonzero(mask)
        ordered = rows[np.argsort(-total[rows], kind="stable")][: MAX_NODES // 2].tolist()
        return chosen + [row for row in ordered if row not in chosen]

    def _refused_rows(self, mask: Mask) -> list[int]:
        rows: list[int] = np.flatnonzero(~mask)[:MAX_NODES].tolist()
        return rows

    def _domain_scores(self, pod: PodInfo, hypernode: HyperNodeInfo) -> dict[str, Vector]:
        """The scores of plugins for nodes of a hypernode, by plugin, over all rows."""
        found: dict[str, Vector] = {}
        for name, function in chain.from_iterable(self.named_functions(ExtensionPoint.DOMAIN_NODE_ORDER)):
            scores = np.zeros(len(self.table))
            scores[hypernode.rows] = function(pod, hypernode.rows)
            found[name] = found[name] + scores if name in found else scores
        return found

    # Victims.

    def _note_victims(
        self,
        job: JobInfo,
        pod: str,
        candidates: Sequence[PodInfo],
        found: VictimSelection,
        sparing: Callable[[Sequence[PodInfo]], Iterator[tuple[str, set[str]]]],
    ) -> None:
        noted = self._trace.victims.setdefault(job.group.uid, [])
        if not candidates or len(noted) >= MAX_VICTIMS:
            return
        allowed = {one.spec.uid for one in found.victims}
        spared: dict[str, str] = {}
        if len(allowed) < len(candidates):
            for name, uids in sparing(candidates):
                for uid in uids:
                    spared.setdefault(uid, name)
        for one in candidates[: MAX_VICTIMS - len(noted)]:
            uid = one.spec.uid
            by = "" if uid in allowed else spared.get(uid, "")
            noted.append(
                VictimVerdict(self.action, pod, one.spec.name, one.job.group.name, one.node, uid in allowed, by)
            )

    def _sparing(
        self, point: ExtensionPoint, pod: PodInfo, candidates: Sequence[PodInfo]
    ) -> Iterator[tuple[str, set[str]]]:
        """By plugin, the candidates that it spares."""
        remaining = list(candidates)
        if not self.policy.follows_volcano:
            for name, function in chain.from_iterable(self.named_functions(ExtensionPoint.SPARED)):
                spared = {one.spec.uid for one in function(pod, remaining)}
                remaining = [one for one in remaining if one.spec.uid not in spared]
                yield name, spared
        for name, function in chain.from_iterable(self.named_functions(point)):
            named = None if name == _EXTENDER else function(pod, remaining)
            if named is not None:
                yield name, {one.spec.uid for one in remaining} - {one.spec.uid for one in named}

    def _sparing_gang(self, job: JobInfo, action: str, candidates: Sequence[PodInfo]) -> Iterator[tuple[str, set[str]]]:
        for name, function in chain.from_iterable(self.named_functions(ExtensionPoint.EVICTABLE)):
            named = None if name == _EXTENDER else function(job, candidates, action)
            if named is not None:
                yield name, {one.spec.uid for one in candidates} - {one.spec.uid for one in named}


def _is_same(left: Any, right: Any) -> bool:  # noqa: ANN401
    return left.reason == right.reason and bool((left.mask == right.mask).all())


def _first_refusals(
    mask: Mask, vetoes: Sequence[tuple[str, Any]], short: Mapping[str, Mask]
) -> dict[tuple[str, str], int]:
    """The number of nodes by the first plugin and reason that refused them; "" for a lack of room."""
    left, counts = ~mask, dict[tuple[str, str], int]()
    for name, one in vetoes:
        counts[name, one.reason] = counts.get((name, one.reason), 0) + int((one.mask & left).sum())
        left &= ~one.mask
    for resource, lacks in short.items():
        counts["", f"insufficient {resource}"] = int((lacks & left).sum())
        left &= ~lacks
    return {key: count for key, count in counts.items() if count}
