"""Pending reasons that explain why no pod was evicted for a waiting job; computed after an action.

Victims are counted for each class of a job's waiting pods. To keep the cost far below that of the search itself, only
`MAX_COUNTS` classes on `MAX_NODES` nodes are counted; the reasons report what was left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hekla.domain.resources import Resources
from hekla.engine import victims
from hekla.engine.columns import fits
from hekla.engine.decisions import Cause, Exclusion, PendingReason, VictimCounts
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.preemption_cache import equivalence_key
from hekla.engine.session import Session
from hekla.engine.victims import VictimIndex

MAX_COUNTS = 16
"""The maximum number of pod classes or whole jobs for which an action counts victims."""
MAX_NODES = 32
"""The maximum number of nodes examined for each of them."""


class PreemptionDiagnosis:
    """The reasons of one action for jobs that still wait when the session closes. `code`: if no victim was found."""

    def __init__(self, session: Session, action: str, cause: Cause, code: str) -> None:
        self._session, self._action, self._cause, self._code = session, action, cause, code
        self._reasons: dict[str, list[PendingReason]] = defaultdict(list)
        self._by_class: dict[Hashable, list[PendingReason]] = {}
        self._counts_left = MAX_COUNTS
        self._overused: dict[str, bool] = {}
        session.on_close.append(self._write)

    def starving(self, jobs: Iterable[JobInfo]) -> list[JobInfo]:
        """The starving jobs with waiting pods, in job order."""
        session = self._session
        waiting = (job for job in jobs if job.count_by_status[PodStatus.PENDING] > job.pending_best_effort)
        return sorted((job for job in waiting if session.is_starving(job)), key=session.rank)

    def is_explained(self, job: JobInfo) -> bool:
        """Whether an equal job was explained already; its reasons are then shared."""
        key = equivalence_key(self._session, job)
        if key is None:
            return False
        if key in self._by_class:
            self._reasons[job.group.uid] = self._by_class[key]
            return True
        self._by_class[key] = self._reasons[job.group.uid]
        return False

    def may_reclaim(self, job: JobInfo, pods: Sequence[PodInfo]) -> bool:
        """Whether the queue may reclaim for these pods; if not, records that as the reason."""
        session, queue = self._session, self._session.queues[job.group.queue]
        if queue.name not in self._overused:
            self._overused[queue.name] = session.any_agrees(ExtensionPoint.OVERUSED, queue)
        may = not self._overused[queue.name] and session.all_agree(ExtensionPoint.PREEMPTIVE, queue, pods)
        if not may:
            self._forbid(job, "queue_takes_nothing", job.count_by_status[PodStatus.PENDING])
        return may

    def explain_job(self, job: JobInfo, count: Callable[[JobInfo], VictimCounts]) -> None:
        """Record why no pod was evicted for the whole job."""
        pods = job.pending()
        if not self._is_limit_reached(job, len(pods)):
            need = sum((pod.spec.request for pod in pods), Resources())
            self._add(job, len(pods), need, count(job))

    def explain_pods(self, job: JobInfo, pods: list[PodInfo], count: Callable[[PodInfo], VictimCounts]) -> None:
        """Record, class by class, why no pod was evicted for these pods."""
        willing = [pod for pod in pods if not pod.spec.never_preempts]
        if len(willing) < len(pods):
            self._forbid(job, "never_evicts", len(pods) - len(willing))
        for alike in self._classes(willing):
            if self._is_limit_reached(job, len(willing)):
                return
            self._add(job, len(alike), alike[0].spec.request, count(alike[0]))

    def _forbid(self, job: JobInfo, code: str, pods: int) -> None:
        self._reasons[job.group.uid].append(PendingReason(self._cause, self._action, "", code, pods=pods))

    def _classes(self, pods: Iterable[PodInfo]) -> Iterable[list[PodInfo]]:
        """Pods grouped by class; one group once the limit of counts is reached."""
        classes: dict[Hashable, list[PodInfo]] = defaultdict(list)
        for pod in pods:
            classes[self._session.class_of(pod) if self._counts_left else None].append(pod)
        return classes.values()

    def _is_limit_reached(self, job: JobInfo, pods: int) -> bool:
        if self._counts_left:
            self._counts_left -= 1
            return False
        self._forbid(job, "victims_not_counted", pods)
        return True

    def _add(self, job: JobInfo, pods: int, need: Resources, found: VictimCounts) -> None:
        reason = PendingReason(self._cause, self._action, "", self._code, need=need, pods=pods, victims=found)
        self._reasons[job.group.uid].append(reason)

    def _write(self) -> None:
        for uid, reasons in self._reasons.items():
            if self._session.jobs[uid].count_by_status[PodStatus.PENDING]:
                self._session.reasons[uid] += (*reasons,)


@dataclass(frozen=True, slots=True)
class VictimSearch:
    """The victim search of an action that evicts pod by pod.

    `is_candidate(preemptor, victim)`; `why_excluded(preemptor, victim)`: why it skips an otherwise possible victim.
    """

    point: ExtensionPoint
    is_candidate: Callable[[PodInfo, PodInfo], bool]
    why_excluded: Callable[[PodInfo, PodInfo], Exclusion | None]

    def diagnose(self, session: Session, victim_index: VictimIndex, pod: PodInfo) -> VictimCounts:
        """Counts the victims on the nodes where evictions might make room for the pod."""
        node_fit = session.node_fit(pod)
        node_fit.refresh()
        curable = node_fit.resolvable(in_own_queue=self.point is ExtensionPoint.PREEMPTABLE)
        listed = session.table.state_order
        rows, tally = listed[curable[listed]].tolist(), _Tally()
        for row in rows[:MAX_NODES]:
            self._count(session, victim_index, pod, row, tally)
        looked = min(len(rows), MAX_NODES)
        return VictimCounts(
            dict(tally.spared), tally.insufficient, tally.not_enough_for_job, dict(tally.excluded), looked, len(rows)
        )

    def _count(self, session: Session, victim_index: VictimIndex, pod: PodInfo, row: int, tally: "_Tally") -> None:
        candidates: list[PodInfo] = []
        for victim in victim_index.on_node(row):
            if self.is_candidate(pod, victim):
                candidates.append(victim)
            elif why := self.why_excluded(pod, victim):
                tally.excluded[why] += 1
        if not candidates:
            return
        selection, room = session.select_victims(self.point, pod, candidates), session.table.future_idle(row)
        tally.spared += selection.spared_by()
        if fits(pod.request, room + victims.total_request(selection.victims, room)):
            tally.not_enough_for_job += len(selection.victims)
        else:
            tally.insufficient += len(selection.victims)


class _Tally:
    def __init__(self) -> None:
        self.spared: Counter[str] = Counter()
        self.excluded: Counter[Exclusion] = Counter()
        self.insufficient = self.not_enough_for_job = 0
