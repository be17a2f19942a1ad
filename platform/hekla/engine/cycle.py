"""One cycle: a state and a policy in, decisions out. No clock, no randomness, no I/O.

1. leave out what makes no sense
2. open the session: columns, gangs, queues; plugins register in the order of tiers
3. run the actions in the order of the policy
4. close: the phase of every gang, and a reason for all that waits

Where a plugin or an action fails, everything is decided anew without it, or nothing is (`faults`).
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from hekla.domain.errors import Problem
from hekla.engine import checks, registry
from hekla.engine.closing import phase_at_close, phase_before_close
from hekla.engine.decisions import Cause, Decisions, Fault, Reason
from hekla.engine.faults import Failed, guarded_listener, is_action_skipped, is_skipped
from hekla.engine.model import ClusterState, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption, Policy
from hekla.engine.session import Call, Session


def cycle(
    state: ClusterState, policy: Policy, now: float, call: Call | None = None, *, is_detailed: bool = False
) -> Decisions:
    """Decide once. `now` is in seconds since the epoch; `call` asks other programs for the plugins that do.

    `is_detailed`: also the phases before the close, and how many tasks of each job stand where.
    """
    with _without_collection():
        return _decide(state, policy, now, call, is_detailed=is_detailed)


@contextmanager
def _without_collection() -> Iterator[None]:
    """A cycle makes many objects at once and no garbage in circles to speak of: looking for it costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decide(state: ClusterState, policy: Policy, now: float, call: Call | None, *, is_detailed: bool) -> Decisions:
    sound, refused = checks.sound(state)
    faults: list[Fault] = []
    while True:
        session = Session(sound, policy, now, call)
        try:
            _run(session)
            decisions = replace(_close(session, is_detailed=is_detailed), faults=tuple(faults))
            break
        except Failed as failure:
            smaller = _without(session, failure)
            faults.append(failure.fault(is_skipped=smaller is not None))
            if smaller is None:
                decisions = _nothing(sound, faults)
                break
            policy = smaller
    return _with_refused(decisions, refused) if refused else decisions


def _run(session: Session) -> None:
    for tier in session.policy.tiers:
        for option in tier:
            _open(session, option)
    for name in session.policy.actions:
        try:
            registry.actions()[name].execute(session, session.policy.configurations.get(name, {}))
        except Failed:
            raise
        except Exception as error:
            raise Failed(name, "action", None, error) from error


def _open(session: Session, option: PluginOption) -> None:
    heard, closing = len(session.on_change), len(session.on_close)
    try:
        registry.plugins()[option.name].open_session(session, option)
    except Exception as error:
        raise Failed(option.name, "open", option, error) from error
    session.on_change[heard:] = [guarded_listener(option, "change", one) for one in session.on_change[heard:]]
    session.on_close[closing:] = [guarded_listener(option, "close", one) for one in session.on_close[closing:]]


def _without(session: Session, failure: Failed) -> Policy | None:
    """The policy to go on with; None: nothing may be decided."""
    policy, option = session.policy, failure.option
    if option is None:
        name = failure.fault(is_skipped=False).name
        rest = tuple(action for action in policy.actions if action != name)
        return replace(policy, actions=rest) if is_action_skipped(policy.configurations.get(name, {})) else None
    if not is_skipped(option, session.points_of(option)):
        return None
    return replace(policy, tiers=tuple(tuple(one for one in tier if one is not option) for tier in policy.tiers))


def _nothing(state: ClusterState, faults: list[Fault]) -> Decisions:
    """Everything stays as it is; who waits, waits for the policy to be repaired."""
    reason = Reason(Cause.POLICY, "", faults[-1].name, "plugin_failed")
    waiting = (job for job in state.jobs if any(task.status is TaskStatus.PENDING for task in job.tasks))
    return Decisions(
        phases={job.uid: job.phase for job in state.jobs},
        reasons={job.uid: (reason,) for job in waiting},
        faults=tuple(faults),
    )


def _with_refused(decisions: Decisions, refused: Mapping[str, tuple[Problem, ...]]) -> Decisions:
    reason = (Reason(Cause.POLICY, "", "checks", "not_valid", ever=False),)
    return replace(decisions, refused=refused, reasons={**decisions.reasons, **dict.fromkeys(refused, reason)})


def _close(session: Session, *, is_detailed: bool) -> Decisions:
    is_unschedulable = partial(session.any_says, Point.UNSCHEDULABLE)
    phases = {uid: phase_at_close(gang, is_unschedulable) for uid, gang in session.gangs.items()}
    told = session.gangs if is_detailed else {}
    before = {uid: phase_before_close(gang) for uid, gang in told.items()}
    pipelined = {
        member.task.uid: member.node
        for gang in session.gangs.values()
        if gang.waiting_count
        for member in gang.members
        if member.status is TaskStatus.PIPELINED
    }
    for closed in session.on_close:
        closed()
    return Decisions(
        binds=tuple(session.binds),
        evictions=tuple(session.evictions),
        pipelined=pipelined,
        nominated={task: node for task, node in session.nominated.items() if pipelined.get(task) == node},
        phases=phases,
        phases_before_close={uid: phase for uid, phase in before.items() if phase is not phases[uid]},
        counts={uid: dict(+gang.count) for uid, gang in told.items()},
        reasons={uid: tuple(reasons) for uid, reasons in session.reasons.items() if reasons},
    )
