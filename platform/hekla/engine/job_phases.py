"""The phase of a job when the session closes (`volcano-spec` §3.6, last line)."""

from collections.abc import Callable, Hashable, Mapping, Sequence

from hekla.domain.phases import GangPhase
from hekla.engine.job_info import JobInfo
from hekla.engine.model import PodStatus
from hekla.engine.policy import SchedulerPolicy

_SCHEDULED = (PodStatus.BOUND, PodStatus.RUNNING, PodStatus.SUCCEEDED, PodStatus.FAILED)
_OVER = (PodStatus.SUCCEEDED, PodStatus.FAILED)
Known = tuple[object, int, GangPhase]
"""Policy, version of the job, and phase."""


def scheduled_count(job: JobInfo) -> int:
    """Pods that are or were on a node, releasing ones included."""
    count = job.count_by_status.get
    releasing = 0
    if count(PodStatus.RELEASING):
        releasing = sum(m.status is PodStatus.RELEASING and bool(m.node) for m in job.pods)
    return sum([count(status, 0) for status in _SCHEDULED]) + releasing


def phases_at_close(
    jobs: Mapping[str, JobInfo], policy: SchedulerPolicy, is_unschedulable: Sequence[Callable[[JobInfo], bool]]
) -> dict[str, GangPhase]:
    """The phase of every job; cached until the job or the policy changes. Twins without running pods share theirs."""

    def any_says(job: JobInfo) -> bool:
        return any(function(job) for function in is_unschedulable)

    phases = {}
    of_twins: dict[Hashable, Known] = {}
    for uid, job in jobs.items():
        known = job.phase_at_close
        if known is None or known[1] != job.version or known[0] is not policy:
            twins = id(job.count_by_status), job.phase
            known = of_twins.get(twins)
            if known is None or known[1] != job.version or job.count_by_status.get(PodStatus.RUNNING):
                known = of_twins[twins] = policy, job.version, phase_at_close(job, any_says)
            job.phase_at_close = known
        phases[uid] = known[2]
    return phases


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
