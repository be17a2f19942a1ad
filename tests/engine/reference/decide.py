"""One cycle of the reference: actions in order, then the phases (`volcano-spec` §3.1, §3.6, §4)."""

from collections.abc import Callable

from tests.engine.reference import evicting, placing
from tests.engine.reference.run import Run
from tests.engine.reference.world import OVER, Job, S

from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState
from hekla.engine.policy import SchedulerPolicy

ACTIONS: dict[str, Callable[[Run], None]] = {
    "enqueue": placing.enqueue,
    "allocate": placing.allocate,
    "backfill": placing.backfill,
    "preempt": evicting.preempt,
    "reclaim": evicting.reclaim,
}


def decide(state: ClusterState, policy: SchedulerPolicy) -> Decisions:
    run = Run(state, policy)
    for name in policy.actions:
        ACTIONS[name](run)
    promised = [task for job in run.world.jobs for task in job.tasks if task.status is S.PIPELINED and task.node]
    pipelined = {task.uid: task.node.spec.name for task in promised if task.node}
    return Decisions(
        binds=tuple(run.binds),
        evictions=tuple(run.evictions),
        pipelined=pipelined,
        nominated=run.nominated,
        phases={job.spec.uid: _phase(run, job) for job in run.world.jobs},
    )


def _phase(run: Run, job: Job) -> GangPhase:
    has_gang = any(option.name == "gang" for tier in run.policy.tiers for option in tier)
    if job.count(S.RUNNING) and has_gang and _is_unschedulable(job):
        return GangPhase.UNKNOWN
    if job.tasks and job.scheduled >= job.spec.min_available:
        return GangPhase.COMPLETED if job.count(*OVER) == len(job.tasks) else GangPhase.RUNNING
    return GangPhase.INQUEUE if job.phase is GangPhase.INQUEUE else GangPhase.PENDING


def _is_unschedulable(job: Job) -> bool:
    if job.is_ready() or not job.tasks:
        return False
    return job.count(S.PENDING, S.PIPELINED) > 0 or job.scheduled < job.spec.min_available
