"""Gangreclaim: evict jobs of other queues in one hypernode for a starving job (`volcano-spec` §4)."""

from collections.abc import Mapping
from functools import partial

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine import job_queues
from hekla.engine.decisions import Cause, Exclusion
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.gang_eviction import EvictionRules, GangEvictor
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus, QueueSpec
from hekla.engine.policy import Argument
from hekla.engine.preemption_cache import PreemptionCache
from hekla.engine.preemption_diagnosis import PreemptionDiagnosis
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session

NAME = "gangreclaim"

NEEDS = (
    Need(Input.JOB_ANNOTATIONS, Lack.PART, gettext_noop("Only the setting of each pod protects it from an eviction.")),
    Need(Input.HYPERNODES, Lack.PART, gettext_noop("It looks for room in the whole cluster.")),
    Need(Input.JOB_TOPOLOGY, Lack.PART, gettext_noop("It looks for room in the whole cluster.")),
)


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Reclaim for one job of the first queue at a time; overused queues reclaim nothing."""
    evictor = GangEvictor(session, _rules(session), arguments)
    found = session.valid_jobs()
    jobs = [job for job in found if job.pending_count and session.is_starving(job)]
    starving = job_queues.queues_by_name(session, jobs)
    queues = HeapQueue(session.queue_before, (session.queues[name] for name in starving))
    failed = PreemptionCache(session, ExtensionPoint.EVICTABLE)
    while len(queues):
        queue = queues.pop()
        if session.any_agrees(ExtensionPoint.OVERUSED, queue) or not len(starving[queue.name]):
            continue
        failed.try_once(starving[queue.name].pop(), partial(_take_back, session, evictor, queue))
        queues.push(queue)
    diagnosis = PreemptionDiagnosis(session, NAME, Cause.QUOTA, "nobody_reclaimed")
    for job in diagnosis.starving(jobs):
        if not diagnosis.is_explained(job) and diagnosis.may_reclaim(job, job.pending()):
            diagnosis.explain_job(job, evictor.diagnose)


def _take_back(session: Session, evictor: GangEvictor, queue: QueueSpec, job: JobInfo) -> bool:
    """Evict for the job if its queue may reclaim. False if nothing was changed."""
    return session.all_agree(ExtensionPoint.PREEMPTIVE, queue, job.pending()) and evictor.evict_for(queue, job)


def _rules(session: Session) -> EvictionRules:
    queues = session.queues

    def may_go(job: JobInfo, victim: PodInfo) -> bool:
        return is_foreign(job, victim) and queues[victim.job.group.queue].reclaimable

    def barred(job: JobInfo, victim: PodInfo) -> Exclusion | None:
        return Exclusion.QUEUE_NOT_RECLAIMABLE if is_foreign(job, victim) and not may_go(job, victim) else None

    def is_foreign(job: JobInfo, victim: PodInfo) -> bool:
        return victim.job.group.queue != job.group.queue and victim.status is PodStatus.RUNNING

    def compare(left: JobInfo, right: JobInfo, of: JobInfo) -> float:
        mine, other = queues[left.group.queue], queues[right.group.queue]
        if mine is other:
            return session.compare_jobs(right, left)
        sign = session.compare(ExtensionPoint.VICTIM_QUEUE_ORDER, mine, other, queues[of.group.queue])
        return sign or (-1 if session.queue_before(other, mine) else 1)

    return EvictionRules(NAME, may_go, barred, compare)
