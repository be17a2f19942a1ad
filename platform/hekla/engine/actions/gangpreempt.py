"""Gangpreempt: evict lower-priority jobs of the same queue in one hypernode for a starving job (`volcano-spec` §4)."""

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
from hekla.engine.model import PodStatus
from hekla.engine.policy import Argument
from hekla.engine.preemption_cache import PreemptionCache
from hekla.engine.preemption_diagnosis import PreemptionDiagnosis
from hekla.engine.priority_queue import HeapQueue
from hekla.engine.session import Session

NAME = "gangpreempt"
_EVICTABLE = frozenset({PodStatus.BOUND, PodStatus.RUNNING})

NEEDS = (
    Need(Input.JOB_ANNOTATIONS, Lack.PART, gettext_noop("Only the setting of each pod protects it from an eviction.")),
    Need(Input.HYPERNODES, Lack.PART, gettext_noop("It looks for room in the whole cluster.")),
    Need(Input.JOB_TOPOLOGY, Lack.PART, gettext_noop("It looks for room in the whole cluster.")),
)


def execute(session: Session, arguments: Mapping[str, Argument]) -> None:
    """Preempt queue by queue, in job order."""

    def last_first(left: JobInfo, right: JobInfo, _for: JobInfo) -> float:
        return session.compare_jobs(right, left)

    evictor = GangEvictor(session, EvictionRules(NAME, _may_go, _barred, last_first), arguments)
    found = session.valid_jobs()
    jobs = [job for job in found if job.pending_count and session.is_starving(job)]
    starving = job_queues.queues_by_name(session, jobs)
    queues = HeapQueue(session.queue_before, (session.queues[name] for name in starving))
    failed = PreemptionCache(session, ExtensionPoint.EVICTABLE)
    while len(queues):
        queue = queues.pop()
        while len(starving[queue.name]):
            failed.try_once(starving[queue.name].pop(), partial(evictor.evict_for, queue))
    diagnosis = PreemptionDiagnosis(session, NAME, Cause.PRIORITY, "nobody_preempted")
    for job in diagnosis.starving(jobs):
        if not diagnosis.is_explained(job):
            diagnosis.explain_job(job, evictor.diagnose)


def _may_go(job: JobInfo, victim: PodInfo) -> bool:
    return _is_meant(job, victim) and victim.job.group.priority < job.group.priority


def _barred(job: JobInfo, victim: PodInfo) -> Exclusion | None:
    return Exclusion.NOT_LESS_URGENT if _is_meant(job, victim) and not _may_go(job, victim) else None


def _is_meant(job: JobInfo, victim: PodInfo) -> bool:
    is_other = victim.job is not job and victim.job.group.queue == job.group.queue
    return is_other and victim.status in _EVICTABLE
