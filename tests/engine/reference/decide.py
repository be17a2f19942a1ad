"""One cycle of the reference: actions in order, then the phases (`volcano-spec` §3.1, §3.6, §4)."""

from collections.abc import Callable

from tests.engine.reference import allocation, eviction
from tests.engine.reference.session import Session
from tests.engine.reference.state import OVER, Job, S

from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState
from hekla.engine.policy import SchedulerPolicy

ACTIONS: dict[str, Callable[[Session], None]] = {
    "enqueue": allocation.enqueue,
    "allocate": allocation.allocate,
    "backfill": allocation.backfill,
    "preempt": eviction.preempt,
    "reclaim": eviction.reclaim,
}


def decide(state: ClusterState, policy: SchedulerPolicy) -> Decisions:
    session = Session(state, policy)
    for name in policy.actions:
        ACTIONS[name](session)
    promised = [task for job in session.state.jobs for task in job.tasks if task.status is S.PIPELINED and task.node]
    pipelined = {task.uid: task.node.spec.name for task in promised if task.node}
    return Decisions(
        binds=tuple(session.binds),
        evictions=tuple(session.evictions),
        pipelined=pipelined,
        nominated=session.nominated,
        phases={job.spec.uid: _phase(session, job) for job in session.state.jobs},
    )


def _phase(session: Session, job: Job) -> GangPhase:
    has_gang = any(option.name == "gang" for tier in session.policy.tiers for option in tier)
    if job.count(S.RUNNING) and has_gang and _is_unschedulable(job):
        return GangPhase.UNKNOWN
    if job.tasks and job.scheduled >= job.spec.min_available:
        return GangPhase.COMPLETED if job.count(*OVER) == len(job.tasks) else GangPhase.RUNNING
    return GangPhase.INQUEUE if job.phase is GangPhase.INQUEUE else GangPhase.PENDING


def _is_unschedulable(job: Job) -> bool:
    if job.is_ready() or not job.tasks:
        return False
    return job.count(S.PENDING, S.PIPELINED) > 0 or job.scheduled < job.spec.min_available
