"""One cycle: a state and a policy in, decisions out. No clock, no randomness, no I/O.

1. open the session: columns, gangs, queues; plugins register in the order of tiers
2. run the actions in the order of the policy
3. close: the phase of every gang, and a reason for all that waits
"""

from hekla.domain.phases import GangPhase
from hekla.engine import registry
from hekla.engine.closing import phase_at_close, phase_before_close
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import Policy
from hekla.engine.session import Session


def cycle(state: ClusterState, policy: Policy, now: float) -> Decisions:
    """Decide once. `now` is in seconds since the epoch."""
    session = Session(state, policy, now)
    for tier in policy.tiers:
        for option in tier:
            registry.plugins()[option.name].open_session(session, option)
    for name in policy.actions:
        registry.actions()[name].execute(session, policy.configurations.get(name, {}))
    return _close(session)


def _close(session: Session) -> Decisions:
    phases: dict[str, GangPhase] = {
        uid: phase_at_close(gang, is_unschedulable=session.any_says(Point.UNSCHEDULABLE, gang))
        for uid, gang in session.gangs.items()
    }
    before = {uid: phase_before_close(gang) for uid, gang in session.gangs.items()}
    pipelined = {
        member.task.uid: member.node
        for gang in session.gangs.values()
        for member in gang.members
        if member.status is TaskStatus.PIPELINED
    }
    return Decisions(
        binds=tuple(session.binds),
        evictions=tuple(session.evictions),
        pipelined=pipelined,
        nominated={task: node for task, node in session.nominated.items() if pipelined.get(task) == node},
        phases=phases,
        phases_before_close={uid: phase for uid, phase in before.items() if phase is not phases[uid]},
        counts={uid: dict(+gang.count) for uid, gang in session.gangs.items()},
        reasons={uid: tuple(reasons) for uid, reasons in session.reasons.items() if reasons},
    )
