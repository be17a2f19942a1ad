"""All or nothing: a job starts when its minimum is placed (`volcano-spec` §5.1)."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.job_phases import scheduled_count
from hekla.engine.model import PodStatus
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.engine.subjobs import SubJobInfo, subjobs_of

_PLACED = ALLOCATED | {PodStatus.SUCCEEDED}
_PROMISED = _PLACED | {PodStatus.PIPELINED}
_VALID = _PROMISED | {PodStatus.PENDING}
_IS_VALID, _IS_READY, _IS_PIPELINED = attrgetter("is_valid"), attrgetter("is_ready"), attrgetter("is_pipelined")

NEEDS = (Need(Input.SUB_GROUPS, Lack.PART, gettext_noop("Gangs have no sub-groups.")),)


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs below their minimum first, and make a job ready only with its whole minimum."""
    session.register(ExtensionPoint.JOB_VALID, option, _invalid, is_cacheable=True)
    session.register(ExtensionPoint.JOB_ORDER, option, _is_ready, is_cacheable=True)
    session.register(ExtensionPoint.JOB_READY, option, _is_ready)
    session.register(ExtensionPoint.JOB_PIPELINED, option, _pipelined, is_cacheable=True)
    session.register(ExtensionPoint.SUBJOB_ORDER, option, lambda left, right: int(left.is_ready) - int(right.is_ready))
    session.register(ExtensionPoint.SUBJOB_READY, option, lambda subjob: subjob.is_ready)
    session.register(ExtensionPoint.SUBJOB_PIPELINED, option, _subjob_pipelined)
    session.register(ExtensionPoint.JOB_STARVING, option, _is_starving, is_cacheable=True)
    session.register(ExtensionPoint.PREEMPTABLE, option, _surplus, is_cacheable=True)
    session.register(ExtensionPoint.RECLAIMABLE, option, _surplus, is_cacheable=True)
    session.register(
        ExtensionPoint.EVICTABLE, option, lambda _job, candidates, _action: list(candidates), is_cacheable=True
    )
    session.register(ExtensionPoint.SPARED, option, _needed, is_cacheable=True)
    session.register(ExtensionPoint.UNSCHEDULABLE, option, _is_unschedulable)


def _invalid(job: JobInfo) -> PendingReason | None:
    if (
        job.roles_have_minimum(_VALID)
        and job.valid_count >= job.group.min_available
        and _enough_subjobs(job, _IS_VALID)
    ):
        return None
    missing = max(job.group.min_available - job.valid_count, 1)
    return PendingReason(Cause.GANG, "allocate", "gang", "not_enough_pods", pods=missing)


def _is_ready(job: JobInfo) -> bool:
    have_minimum = job.is_ready and (job.minimum_covers_roles or job.roles_have_minimum(_PLACED))
    return have_minimum and _enough_subjobs(job, _IS_READY)


def _is_starving(job: JobInfo) -> bool:
    return job.waiting_count + job.ready_count < job.group.min_available


def _is_unschedulable(job: JobInfo) -> bool:
    """Whether the job lacks its minimum for another reason than pods that are still releasing."""
    if _is_ready(job) or not job.size:
        return False
    waits = job.count_by_status[PodStatus.PENDING] + job.count_by_status[PodStatus.PIPELINED]
    return bool(waits) or scheduled_count(job) < job.group.min_available


def _surplus(_pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
    """From each job, as many of the candidates as it has pods above its minimum, in the given order."""
    left: dict[str, int] = {}
    chosen = []
    for victim in candidates:
        uid = victim.job.group.uid
        ready = left.setdefault(uid, victim.job.ready_count)
        if ready > victim.job.group.min_available:
            left[uid] = ready - 1
            chosen.append(victim)
    return chosen


def _needed(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
    surplus = {victim.spec.uid for victim in _surplus(pod, candidates)}
    return [victim for victim in candidates if victim.spec.uid not in surplus]


def _pipelined(job: JobInfo) -> Vote:
    is_promised = job.is_pipelined and job.roles_have_minimum(_PROMISED) and _enough_subjobs(job, _IS_PIPELINED)
    return Vote.PERMIT if is_promised else Vote.REJECT


def _subjob_pipelined(subjob: SubJobInfo) -> Vote:
    return Vote.PERMIT if subjob.is_pipelined else Vote.REJECT


def _enough_subjobs(job: JobInfo, is_good: Callable[[SubJobInfo], bool]) -> bool:
    """Whether each sub-group policy of the job has enough good sub-jobs."""
    return not job.group.sub_groups or subjobs_of(job).has_enough(is_good)
