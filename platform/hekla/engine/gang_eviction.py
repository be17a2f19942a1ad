"""Makes room for a whole job in one hypernode by evicting bundles (`volcano-spec` §4, gangpreempt, gangreclaim).

Hypernodes are tried the widest first; in each, bundles are added until the job fits. Its pods are pipelined and
nominated, so that the next cycle tries those nodes first.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key

import numpy as np

from hekla.engine.bundles import Bundle, bundles
from hekla.engine.columns import EPSILON, Vector, fits
from hekla.engine.decisions import Exclusion, VictimCounts
from hekla.engine.hypernode_allocation import HyperNodeAllocator
from hekla.engine.hypernodes import HyperNodeInfo
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement
from hekla.engine.victim_selection import VictimSelection

_MAX_HYPERNODES = 8
_PREEMPTABLE = "volcano.sh/preemptable"


@dataclass(frozen=True, slots=True)
class EvictionRules:
    """The differences between the two actions.

    `is_candidate(job, pod)`; `why_excluded(job, pod)`: why it skips an otherwise possible victim; `compare(left, right,
    job)`: negative if the left job is evicted first.
    """

    action: str
    is_candidate: Callable[[JobInfo, PodInfo], bool]
    why_excluded: Callable[[JobInfo, PodInfo], Exclusion | None]
    compare: Callable[[JobInfo, JobInfo, JobInfo], float]


class GangEvictor:
    """Evicts bundles for jobs, by the rules of one action."""

    def __init__(self, session: Session, rules: EvictionRules, arguments: Mapping[str, Argument]) -> None:
        self._session, self._rules = session, rules
        most = arguments.get("maxDomains")
        self._max_hypernodes = (
            most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else _MAX_HYPERNODES
        )
        self._allows_whole_bundles = str(arguments.get("allowWholeBundle", True)).lower() != "false"

    def evict_for(self, queue: QueueSpec, job: JobInfo) -> bool:
        """Evict for this job if that lets it start. False if nothing was changed."""
        return any(self._evict_in(queue, job, hypernode) for hypernode in self._domains(job))

    def diagnose(self, job: JobInfo) -> VictimCounts:
        """Counts the possible victims for a job over all hypernodes that were tried."""
        session, rows = self._session, {row for hypernode in self._domains(job) for row in hypernode.rows.tolist()}
        inside = {session.table.nodes[row].name for row in rows}
        found = self._candidate_bundles(job, inside)
        candidates = [victim for bundle in found for victim in bundle.victims]
        selection = session.select_gang_victims(job, candidates, self._rules.action)
        free = sum(len(bundle.victims) for bundle in _permitted(found, selection))
        pods = (pod for one in session.jobs.values() for pod in one.pods if pod.node in inside)
        barred = Counter(self._why_excluded(job, pod) for pod in pods)
        bundled = sum(victim.node in inside for victim in candidates)
        barred[Exclusion.GANG_NOT_WHOLE] += len(selection.victims) - free - bundled
        return VictimCounts(
            spared=dict(selection.spared_by()),
            insufficient=free,
            excluded={why: number for why, number in barred.items() if why and number},
            nodes=len(rows),
            candidate_nodes=len(rows),
        )

    def _why_excluded(self, job: JobInfo, pod: PodInfo) -> Exclusion | None:
        """Why a pod is in no bundle; None if the action does not concern it."""
        if not self._rules.is_candidate(job, pod):
            return self._rules.why_excluded(job, pod)
        return Exclusion.GANG_NOT_WHOLE if _is_preemptable(pod) else Exclusion.NOT_PREEMPTABLE

    def _domains(self, job: JobInfo) -> list[HyperNodeInfo]:
        top = self._session.hypernodes.top
        if job.group.topology is None:
            return [top]
        found = [
            hypernode for hypernodes in self._session.hypernode_gradient(job, top, "evict") for hypernode in hypernodes
        ]
        return found[: self._max_hypernodes]

    def _evict_in(self, queue: QueueSpec, job: JobInfo, hypernode: HyperNodeInfo) -> bool:
        need: Vector = np.sum([pod.request for pod in job.pending()], axis=0)
        waiting = self._bundles(job, hypernode, need)
        room = self._session.table.future_idle(hypernode.rows).sum(axis=0)
        chosen: list[Bundle] = []
        while waiting:
            step = max(1, len(chosen) // 4)
            while waiting and (step > 0 or not fits(need, room)):
                chosen.append(waiting.pop(0))
                room, step = room + chosen[-1].freed_here, step - 1
            if fits(need, room) and self._try(queue, job, hypernode, chosen):
                return True
        return False

    def _bundles(self, job: JobInfo, hypernode: HyperNodeInfo, need: Vector) -> list[Bundle]:
        """The bundles that may be evicted for the job: safe ones first, then by job order and efficiency."""
        session, rules = self._session, self._rules
        inside = {session.table.nodes[row].name for row in hypernode.rows}
        found = self._candidate_bundles(job, inside)
        found.sort(key=lambda bundle: -bundle.efficiency(need))
        found.sort(key=cmp_to_key(lambda left, right: int(np.sign(rules.compare(left.job, right.job, job)))))
        found.sort(key=lambda bundle: not bundle.is_safe)
        selection = session.select_gang_victims(
            job, [victim for bundle in found for victim in bundle.victims], rules.action
        )
        return [replace(bundle, plugins=selection.plugins) for bundle in _permitted(found, selection)]

    def _candidate_bundles(self, job: JobInfo, inside: Container[str]) -> list[Bundle]:
        found: list[Bundle] = []
        for uid in sorted(self._session.jobs):
            victim = self._session.jobs[uid]
            candidates = [m for m in victim.pods if self._rules.is_candidate(job, m) and _is_preemptable(m)]
            if candidates:
                found += bundles(victim, candidates, lambda m: m.node in inside)
        return [bundle for bundle in found if bundle.is_safe or self._allows_whole_bundles]

    def _try(self, queue: QueueSpec, job: JobInfo, hypernode: HyperNodeInfo, chosen: Sequence[Bundle]) -> bool:
        statement = Statement(self._session)
        self._evict(statement, job, chosen)
        mark = len(statement)
        if not HyperNodeAllocator(self._session, queue, job, statement).allocate_in(
            hypernode
        ) or not self._session.is_pipelined(job):
            statement.discard()
            return False
        needed = list(chosen) if self._session.policy.follows_volcano else self._needed(chosen)
        placements = [(pod, self._session.table.row_of[node]) for pod, _, node, _ in statement.save(mark)]
        statement.discard()
        self._evict(statement, job, needed)
        for pod, row in placements:
            statement.place(pod, row, now=False)
            self._session.nominated[pod.spec.uid] = pod.node
        statement.commit()
        return True

    def _evict(self, statement: Statement, job: JobInfo, chosen: Iterable[Bundle]) -> None:
        for bundle in chosen:
            for victim in bundle.victims:
                statement.evict(victim, self._rules.action, job.group.uid, bundle.plugins)

    def _needed(self, chosen: Sequence[Bundle]) -> list[Bundle]:
        """The bundles whose room was used; the others need not be evicted."""
        table = self._session.table
        free = table.future_idle()
        needed: list[Bundle] = []
        for bundle in reversed(chosen):
            left = free.copy()
            for victim in bundle.victims:
                left[table.row_of[victim.node]] -= victim.request
            if (left > -EPSILON).all():
                free = left
            else:
                needed.insert(0, bundle)
        return needed


def _permitted(found: Iterable[Bundle], selection: VictimSelection) -> list[Bundle]:
    """The bundles of which every pod was selected."""
    named = {pod.spec.uid for pod in selection.victims}
    return [bundle for bundle in found if all(victim.spec.uid in named for victim in bundle.victims)]


def _is_preemptable(pod: PodInfo) -> bool:
    return pod.spec.preemptable and pod.job.group.annotations.get(_PREEMPTABLE) != "false"
