"""Preempt: evict pods of other jobs of the queue, then lower-priority pods of the same job (`volcano-spec` §4).

Evictions between jobs are committed only if the job reaches its minimum. Victims keep their resources until they are
gone; the preemptor is pipelined there and bound in a later cycle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

import numpy as np

from hekla.engine import job_queues, reprieve, victims
from hekla.engine.columns import Mask, Vector, fits
from hekla.engine.decisions import Cause, Exclusion
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.policy import Argument
from hekla.engine.preemption_cache import PreemptionCache
from hekla.engine.preemption_diagnosis import PreemptionDiagnosis, VictimSearch
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session
from hekla.engine.statement import Statement
from hekla.engine.victim_selection import VictimSelection
from hekla.engine.victims import VictimIndex

Filter = Callable[[PodInfo, PodInfo], bool]
_EVICTABLE = frozenset({PodStatus.BOUND, PodStatus.RUNNING})
NAME = "preempt"

NEEDS: tuple[Need, ...] = ()


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Preempt queue by queue: first between its jobs, then within each job."""
    starving: dict[str, list[JobInfo]] = {}
    found = session.valid_jobs()
    for job in found:
        if session.is_starving(job) and not job.has_topology:
            starving.setdefault(job.group.queue, []).append(job)
    names = dict.fromkeys(job.group.queue for job in found)
    queues: HeapQueue[QueueSpec] = HeapQueue(session.queue_before, (session.queues[name] for name in names))
    while len(queues):
        queue = queues.pop()
        preemption = Preemption(session, queue, arguments)
        jobs = starving.get(queue.name, [])
        preemption.between_jobs(jobs)
        preemption.inside(jobs)
    _explain(session, chain.from_iterable(starving.values()))


def _explain(session: Session, jobs: Iterable[JobInfo]) -> None:
    """Record why no pod was evicted."""
    if not session.is_explained:
        return
    diagnosis, victim_index = (
        PreemptionDiagnosis(session, NAME, Cause.PRIORITY, "nobody_preempted"),
        VictimIndex(session),
    )
    search = VictimSearch(ExtensionPoint.PREEMPTABLE, _is_candidate_of_others, _barred)
    for job in diagnosis.starving(jobs):
        if diagnosis.is_explained(job):
            continue
        waiting = [pod for pod in job.pending() if not _has_its_room(session, pod)]
        diagnosis.explain_pods(job, waiting, partial(search.diagnose, session, victim_index))


def _is_candidate_of_others(preemptor: PodInfo, victim: PodInfo) -> bool:
    return _of_other_jobs(preemptor, victim) and _is_candidate(preemptor, victim)


def _barred(preemptor: PodInfo, victim: PodInfo) -> Exclusion | None:
    is_meant = _of_other_jobs(preemptor, victim) and victim.status in _EVICTABLE
    return Exclusion.NOT_PREEMPTABLE if is_meant and not victim.spec.preemptable else None


def _of_other_jobs(preemptor: PodInfo, victim: PodInfo) -> bool:
    return victim.job is not preemptor.job and victim.job.group.queue == preemptor.job.group.queue


def _of_the_same_job(preemptor: PodInfo, victim: PodInfo) -> bool:
    return victim.job is preemptor.job


class Preemption:
    """Preemption for the jobs of one queue."""

    def __init__(self, session: Session, queue: QueueSpec, arguments: Mapping[str, Argument]) -> None:
        self._session, self._queue, self._arguments = session, queue, arguments
        self._victim_indexes: dict[Filter, VictimIndex] = {
            may: VictimIndex(session) for may in (_of_other_jobs, _of_the_same_job)
        }

    def between_jobs(self, jobs: list[JobInfo]) -> None:
        """Evict pods of other jobs for starving jobs, in job order."""
        session = self._session
        waiting = job_queues.job_queue(session, self._queue.name, jobs, fair_shares=session.job_orders.fair_shares)
        failed = PreemptionCache(session, ExtensionPoint.PREEMPTABLE)
        while len(waiting):
            failed.try_once(waiting.pop(), self._from_others)

    def _from_others(self, job: JobInfo) -> bool:
        """Evict pods of other jobs for this job. True if something was committed."""
        session, statement = self._session, Statement(self._session)
        pods = self._pending(job)
        while len(pods) and session.is_starving(job):
            self._preempt(statement, pods.pop(), _of_other_jobs)
        is_pipelined = session.is_pipelined(job)
        if is_pipelined:
            statement.commit()
        else:
            statement.discard()
        return is_pipelined

    def inside(self, jobs: list[JobInfo]) -> None:
        """Evict lower-priority pods of a job for its own pods, until a pod finds no victim."""
        failed = PreemptionCache(self._session, ExtensionPoint.PREEMPTABLE)
        for job in jobs:
            failed.try_once(job, self._from_itself)

    def _from_itself(self, job: JobInfo) -> bool:
        """Evict pods of the job for its own pods. True if something was committed."""
        pods, is_changed = self._pending(job), False
        while len(pods):
            statement = Statement(self._session)
            if not self._preempt(statement, pods.pop(), _of_the_same_job):
                break
            statement.commit()
            is_changed = True
        return is_changed

    def _pending(self, job: JobInfo) -> HeapQueue[PodInfo]:
        return HeapQueue(self._session.pod_before, (m for m in job.pods if m.status is PodStatus.PENDING))

    def _preempt(self, statement: Statement, pod: PodInfo, may: Filter) -> bool:
        """Pipeline the pod on a node where evictions make room. False if there is none; then nothing was changed."""
        if pod.spec.never_preempts or _has_its_room(self._session, pod):
            return False
        self._session.attempted_pods.add(pod.spec.uid)
        if self._arguments.get("enableTopologyAwarePreemption") is True:
            return self._preempt_the_least(statement, pod, may)
        node_fit = self._session.node_fit(pod)
        node_fit.refresh()
        curable, listed = node_fit.resolvable(in_own_queue=True), self._session.table.state_order
        worth_trying = curable & ~self._victim_indexes[may].exhausted(pod)
        scores = np.where(worth_trying, node_fit.scores(curable), -np.inf)[listed]
        return any(self._preempt_on(statement, pod, int(listed[at]), may) for at in _best_first(scores))

    def _preempt_on(self, statement: Statement, pod: PodInfo, row: int, may: Filter) -> bool:
        selection, future = self._victims(pod, row, may), self._session.table.future_idle(row)
        if not fits(pod.request, future + victims.total_request(selection.victims, future)):
            self._victim_indexes[may].mark_exhausted(pod, row)
            return False
        order, mark = victims.victims_queue(self._session, selection.victims, pod.job), len(statement)
        while len(order) and not self._has_room(pod, row):
            statement.evict(order.pop(), NAME, pod.job.group.uid, selection.plugins)
        if not self._has_room(pod, row):
            statement.discard(mark)
            return False
        self._promise(statement, pod, row, is_nominated=len(statement) > mark)
        return True

    def _preempt_the_least(self, statement: Statement, pod: PodInfo, may: Filter) -> bool:
        session, found = self._session, list[reprieve.Candidate]()
        curable, listed = self._where_trying_helps(pod), session.table.state_order
        enough = reprieve.candidate_limit(len(listed), self._arguments)
        for row in listed[curable[listed]].tolist():
            has_room = partial(self._has_room, pod, row)
            if not session.policy.follows_volcano and has_room():  # an eviction for another pod left it
                found = [reprieve.Candidate(row, (), ())]
                break
            selection = self._victims(pod, row, may)
            order = victims.victims_queue(session, selection.victims, pod.job)
            candidate = reprieve.select_victims_on_node(statement, row, order, selection.plugins, has_room)
            if candidate and candidate.victims:
                found.append(candidate)
            if len(found) >= enough:
                break
        if not found:
            return False
        best = min(found, key=lambda candidate: candidate.cost)
        for victim in best.victims:
            statement.evict(victim, NAME, pod.job.group.uid, best.plugins)
        self._promise(statement, pod, best.row, is_nominated=bool(best.victims))
        return True

    def _where_trying_helps(self, pod: PodInfo) -> Mask:
        """The rows to try. In Volcano only feasible ones, unless the predicates respect tentative evictions."""
        node_fit, session = self._session.node_fit(pod), self._session
        if not session.policy.follows_volcano or session.any_agrees(ExtensionPoint.TRIES_EVICTIONS):
            return node_fit.resolvable(in_own_queue=True)
        node_fit.refresh()
        return node_fit.feasible

    def _victims(self, pod: PodInfo, row: int, may: Filter) -> VictimSelection:
        here = self._victim_indexes[may].on_node(row)
        candidates = [victim for victim in here if _is_candidate(pod, victim) and may(pod, victim)]
        return self._session.select_victims(ExtensionPoint.PREEMPTABLE, pod, candidates)

    def _promise(self, statement: Statement, pod: PodInfo, row: int, *, is_nominated: bool) -> None:
        if is_nominated:
            self._session.nominated[pod.spec.uid] = self._session.table.nodes[row].name
        statement.place(pod, row, now=False)

    def _has_room(self, pod: PodInfo, row: int) -> bool:
        """Whether the pod fits the row once all victims are gone."""
        if not self._session.all_agree(ExtensionPoint.ALLOCATABLE, self._queue, pod):
            return False
        is_allowed = self._session.node_fit(pod).is_feasible(row)
        return is_allowed and bool(fits(pod.request, self._session.table.future_idle(row)))


def _best_first(scores: Vector) -> Iterator[int]:
    """Indices by score, the best first. Not sorted, because mostly the first one suffices."""
    while len(scores) and scores[at := int(scores.argmax())] > -np.inf:
        yield at
        scores[at] = -np.inf


def _has_its_room(session: Session, pod: PodInfo) -> bool:
    """Whether the nominated node has the room, or will once its victims are gone: then no eviction is needed.

    Volcano only checks that the node is feasible, and only for pods that an action tried before: a pod whose room went
    to another does not preempt again.
    """
    row = session.table.row_of.get(pod.spec.nominated_node)
    if row is None:
        return session.policy.follows_volcano and bool(pod.spec.nominated_node)
    node_fit = session.node_fit(pod)
    leaving = (m for m in session.node_pods[row].values() if m.status is PodStatus.RELEASING)
    is_waiting = any(m.spec.priority < pod.spec.priority for m in leaving)
    if session.policy.follows_volcano:
        return is_waiting or (pod.spec.uid in session.attempted_pods and node_fit.is_feasible(row))
    return is_waiting or node_fit.has_room_now(row) is not None


def _is_candidate(preemptor: PodInfo, victim: PodInfo) -> bool:
    if victim.status not in _EVICTABLE or not victim.spec.preemptable:
        return False
    return victim.best_effort or not preemptor.best_effort
