"""The phase in which a cycle leaves a gang (`volcano-spec` §3.6, last line)."""

from collections.abc import Callable

from hekla.domain.phases import GangPhase
from hekla.engine.gangs import Gang
from hekla.engine.model import TaskStatus

_SCHEDULED = (TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_OVER = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def held_count(gang: Gang) -> int:
    """Tasks that are or were on a node, those that are on their way out too."""
    releasing = 0
    if gang.count[TaskStatus.RELEASING]:
        releasing = sum(m.status is TaskStatus.RELEASING and bool(m.node) for m in gang.members)
    return sum(gang.count[status] for status in _SCHEDULED) + releasing


def phase_at_close(gang: Gang, is_unschedulable: Callable[[Gang], bool]) -> GangPhase:
    """As before the close, but a gang of which a part runs and a part cannot be placed is Unknown."""
    if gang.count[TaskStatus.RUNNING] and is_unschedulable(gang):
        return GangPhase.UNKNOWN
    return phase_before_close(gang)


def phase_before_close(gang: Gang) -> GangPhase:
    """Running once its minimum is scheduled; what was bound in this cycle counts from the next one on."""
    if held_count(gang) >= gang.job.min_available and gang.members:
        over = sum(gang.count[status] for status in _OVER)
        return GangPhase.COMPLETED if over == len(gang.members) else GangPhase.RUNNING
    return GangPhase.INQUEUE if gang.phase is GangPhase.INQUEUE else GangPhase.PENDING
