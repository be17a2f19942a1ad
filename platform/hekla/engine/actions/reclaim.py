"""Reclaim: starving jobs evict pods of other queues that hold more than they deserve (`volcano-spec` §4).

Nodes are tried in the order of the state, without scores; the first suitable one is used.
"""

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from hekla.engine import job_queues, victims
from hekla.engine.columns import fits
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

NAME = "reclaim"

NEEDS: tuple[Need, ...] = ()


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """Reclaim for one job of the first queue at a time; overused queues reclaim nothing.

    Jobs with a network topology are left to gangreclaim, unless the policy follows Volcano.
    """
    found = session.valid_jobs()
    waiting_jobs = (job for job in found if job.count_by_status[PodStatus.PENDING])
    jobs = [job for job in waiting_jobs if session.policy.follows_volcano or not job.has_topology]
    waiting = job_queues.queues_by_name(session, jobs)
    names = dict.fromkeys(job.group.queue for job in found)
    queues: HeapQueue[QueueSpec] = HeapQueue(session.queue_before, (session.queues[name] for name in names))
    victim_index, failed = VictimIndex(session), PreemptionCache(session, ExtensionPoint.RECLAIMABLE)
    while len(queues):
        queue = queues.pop()
        if session.any_agrees(ExtensionPoint.OVERUSED, queue) or not len(waiting.get(queue.name, ())):
            continue
        failed.try_once(waiting[queue.name].pop(), partial(_reclaim_for, session, victim_index, queue))
        queues.push(queue)
    _explain(session, victim_index, jobs)


def _explain(session: Session, victim_index: VictimIndex, jobs: Iterable[JobInfo]) -> None:
    """Record why no pod was evicted."""
    if not session.is_explained:
        return
    diagnosis = PreemptionDiagnosis(session, NAME, Cause.QUOTA, "nobody_reclaimed")
    search = VictimSearch(ExtensionPoint.RECLAIMABLE, partial(_is_candidate, session), partial(_barred, session))
    for job in diagnosis.starving(jobs):
        if diagnosis.is_explained(job):
            continue
        waiting = job.pending()
        if diagnosis.may_reclaim(job, waiting[:1]):
            diagnosis.explain_pods(job, waiting, partial(search.diagnose, session, victim_index))


def _reclaim_for(session: Session, victim_index: VictimIndex, queue: QueueSpec, job: JobInfo) -> bool:
    """Reclaim until the job is pipelined. False if nothing was committed."""
    statement = Statement(session)
    pods = HeapQueue(session.pod_before, (m for m in job.pods if m.status is PodStatus.PENDING))
    while len(pods) and session.is_starving(job):
        pod = pods.pop()
        if not pod.spec.never_preempts and session.all_agree(ExtensionPoint.PREEMPTIVE, queue, [pod]):
            _reclaim(session, victim_index, statement, pod)
    is_pipelined = session.is_pipelined(job)
    if is_pipelined:
        statement.commit()
    else:
        statement.discard()
    return is_pipelined


def _reclaim(session: Session, victim_index: VictimIndex, statement: Statement, pod: PodInfo) -> None:
    node_fit = session.node_fit(pod)
    worth_trying = node_fit.resolvable(in_own_queue=False) & ~victim_index.exhausted(pod)
    listed = session.table.state_order
    for row in listed[worth_trying[listed]].tolist():
        if _reclaim_on(session, victim_index, statement, pod, row):
            return


def _reclaim_on(session: Session, victim_index: VictimIndex, statement: Statement, pod: PodInfo, row: int) -> bool:
    candidates = [m for m in victim_index.on_node(row) if _is_candidate(session, pod, m)]
    selection = (
        session.select_victims(ExtensionPoint.RECLAIMABLE, pod, candidates) if candidates else VictimSelection([])
    )
    room = session.table.future_idle(row)
    if not candidates or not fits(pod.request, room + victims.total_request(selection.victims, room)):
        victim_index.mark_exhausted(pod, row)
        return False
    order = victims.victims_queue(session, selection.victims, pod.job)
    freed = np.zeros_like(room)
    while len(order) and not fits(pod.request, room + freed):
        victim = order.pop()
        statement.evict(victim, NAME, pod.job.group.uid, selection.plugins)
        freed += victim.request
    if freed.any():
        session.nominated[pod.spec.uid] = session.table.nodes[row].name
    statement.place(pod, row, now=False)
    return True


def _barred(session: Session, reclaimer: PodInfo, victim: PodInfo) -> Exclusion | None:
    queue = session.queues[victim.job.group.queue]
    if queue.name == reclaimer.job.group.queue or victim.status is not PodStatus.RUNNING:
        return None
    if not queue.reclaimable:
        return Exclusion.QUEUE_NOT_RECLAIMABLE
    return None if victim.spec.preemptable else Exclusion.NOT_PREEMPTABLE


def _is_candidate(session: Session, reclaimer: PodInfo, victim: PodInfo) -> bool:
    queue = session.queues[victim.job.group.queue]
    is_foreign = queue.name != reclaimer.job.group.queue and queue.reclaimable
    return is_foreign and victim.status is PodStatus.RUNNING and victim.spec.preemptable
