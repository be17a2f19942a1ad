"""The phase in which a cycle leaves a gang (`volcano-spec` §3.6, last line)."""

from hekla.domain.phases import GangPhase
from hekla.engine.gangs import Gang
from hekla.engine.model import TaskStatus

_SCHEDULED = (TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_OVER = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def phase_at_close(gang: Gang) -> GangPhase:
    """Running once its minimum is scheduled; what was bound in this cycle counts from the next one on."""
    running = gang.count[TaskStatus.RUNNING]
    short = gang.ready_count < gang.job.min_available and gang.count[TaskStatus.PENDING] > 0
    if running and short:
        return GangPhase.UNKNOWN
    releasing = sum(m.status is TaskStatus.RELEASING and bool(m.node) for m in gang.members)
    if sum(gang.count[status] for status in _SCHEDULED) + releasing >= gang.job.min_available and gang.members:
        over = sum(gang.count[status] for status in _OVER)
        return GangPhase.COMPLETED if over == len(gang.members) else GangPhase.RUNNING
    return GangPhase.INQUEUE if gang.phase is GangPhase.INQUEUE else GangPhase.PENDING
