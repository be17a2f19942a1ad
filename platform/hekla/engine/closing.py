"""The phase in which a cycle leaves a gang (`volcano-spec` §3.6, last line)."""

from collections.abc import Callable, Mapping, Sequence

from hekla.domain.phases import GangPhase
from hekla.engine.gangs import Gang
from hekla.engine.model import TaskStatus
from hekla.engine.policy import Policy

_SCHEDULED = (TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_OVER = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def held_count(gang: Gang) -> int:
    """Tasks that are or were on a node, those that are on their way out too."""
    releasing = 0
    if gang.count[TaskStatus.RELEASING]:
        releasing = sum(m.status is TaskStatus.RELEASING and bool(m.node) for m in gang.members)
    return sum(gang.count[status] for status in _SCHEDULED) + releasing


def phases_at_close(
    gangs: Mapping[str, Gang], policy: Policy, is_unschedulable: Sequence[Callable[[Gang], bool]]
) -> dict[str, GangPhase]:
    """The phase of every gang. One that did not change since a cycle under the same policy is not asked about again."""

    def any_says(gang: Gang) -> bool:
        return any(answer(gang) for answer in is_unschedulable)

    phases = {}
    for uid, gang in gangs.items():
        known = gang.closing
        if known is None or known[1] != gang.version or known[0] is not policy:
            known = gang.closing = policy, gang.version, phase_at_close(gang, any_says)
        phases[uid] = known[2]
    return phases


def phase_at_close(gang: Gang, is_unschedulable: Callable[[Gang], bool]) -> GangPhase:
    """As before the close, but a gang of which a part runs and a part cannot be placed is Unknown."""
    if gang.count[TaskStatus.RUNNING] and is_unschedulable(gang):
        return GangPhase.UNKNOWN
    return phase_before_close(gang)


def phase_before_close(gang: Gang) -> GangPhase:
    """Running once its minimum is scheduled; what was bound in this cycle counts from the next one on."""
    if held_count(gang) >= gang.job.min_available and gang.size:
        over = sum(gang.count[status] for status in _OVER)
        return GangPhase.COMPLETED if over == gang.size else GangPhase.RUNNING
    return GangPhase.INQUEUE if gang.phase is GangPhase.INQUEUE else GangPhase.PENDING
