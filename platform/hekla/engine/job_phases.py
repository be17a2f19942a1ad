"""The phase of a job when the session closes (`volcano-spec` §3.6, last line)."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat

from hekla.domain.phases import GangPhase
from hekla.engine.equivalence import EquivalenceClass
from hekla.engine.job_info import JobInfo
from hekla.engine.model import PodStatus
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.shared_values import MANY, SharedValues

_SCHEDULED = (PodStatus.BOUND, PodStatus.RUNNING, PodStatus.SUCCEEDED, PodStatus.FAILED)
_OVER = (PodStatus.SUCCEEDED, PodStatus.FAILED)


def scheduled_count(job: JobInfo) -> int:
    """Pods that are or were on a node, releasing ones included."""
    count = job.count_by_status.get
    releasing = 0
    if count(PodStatus.RELEASING):
        releasing = sum(m.status is PodStatus.RELEASING and bool(m.node) for m in job.pods)
    return sum(map(count, _SCHEDULED, repeat(0))) + releasing


def phases_at_close(
    cache: SchedulerCache, policy: SchedulerPolicy, is_unschedulable: Sequence[Callable[[JobInfo], bool]]
) -> Mapping[str, GangPhase]:
    """The phase of every job; cached until the job or the policy changes. Unchanged equal jobs share theirs."""

    def any_says(job: JobInfo) -> bool:
        return any(function(job) for function in is_unschedulable)

    changed, by_phase = cache.changed_jobs, defaultdict[GangPhase, list[EquivalenceClass]](list)
    for equals in cache.equivalence_classes:
        first = next((uid for uid in equals.uids() if uid not in changed), None)
        if first is not None and equals.queue in cache.queues:
            by_phase[phase_at_close(cache.jobs[first], any_says)].append(equals)
    most, phases = _phases_of_equals(by_phase)
    changed_equals = ((uid, job) for uid, job in changed.items() if uid in cache.jobs)
    for uid, job in chain(cache.jobs_without_equals.items(), changed_equals):
        known = job.phase_at_close
        if known is None or known[1] != job.version or known[0] is not policy:
            known = job.phase_at_close = policy, job.version, phase_at_close(job, any_says)
        phases[uid] = known[2]
    if most is None:
        return phases
    uids = cache.jobs.uids
    return SharedValues(phases, [(uids, most)]) if len(uids) >= MANY else dict.fromkeys(uids, most) | phases


def _phases_of_equals(
    by_phase: Mapping[GangPhase, Sequence[EquivalenceClass]],
) -> tuple[GangPhase | None, dict[str, GangPhase]]:
    """The most frequent phase of equal jobs, and the phases of the equal jobs with another one."""
    if not by_phase:
        return None, {}
    most = max(by_phase, key=lambda phase: sum(map(len, by_phase[phase])))
    phases: dict[str, GangPhase] = {}
    for phase in by_phase.keys() - {most}:
        for equals in by_phase[phase]:
            phases.update(dict.fromkeys(equals.uids(), phase))
    return most, phases


def phase_at_close(job: JobInfo, is_unschedulable: Callable[[JobInfo], bool]) -> GangPhase:
    """The phase before the close, but Unknown if a part of the job runs and a part is unschedulable."""
    if job.count_by_status[PodStatus.RUNNING] and is_unschedulable(job):
        return GangPhase.UNKNOWN
    return phase_before_close(job)


def phase_before_close(job: JobInfo) -> GangPhase:
    """Running once the minimum is scheduled, Completed once all pods ended; else Inqueue or Pending.

    Pods bound in this cycle count from the next one on.
    """
    if scheduled_count(job) >= job.group.min_available and job.size:
        over = sum(job.count_by_status[status] for status in _OVER)
        return GangPhase.COMPLETED if over == job.size else GangPhase.RUNNING
    return GangPhase.INQUEUE if job.phase is GangPhase.INQUEUE else GangPhase.PENDING
