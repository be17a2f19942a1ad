"""One cycle: a state and a policy in, decisions out. No clock, no randomness, no I/O.

1. take in what changed, but for what makes no sense (`world`)
2. open the session: what holds under every policy (`bounds`), then plugins in the order of tiers
3. run the actions in the order of the policy
4. close: the phase of every gang, and a reason for all that waits

Where a plugin or an action fails, everything is decided anew without it, or nothing is (`faults`).
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from hekla.domain.errors import Problem
from hekla.engine import bounds, registry
from hekla.engine.closing import phase_before_close, phases_at_close
from hekla.engine.decisions import Cause, Decisions, Fault, Reason
from hekla.engine.faults import Failed, guarded_listener, is_action_skipped, is_skipped
from hekla.engine.gangs import Gang
from hekla.engine.model import ClusterState, TaskStatus
from hekla.engine.points import Point
from hekla.engine.policy import PluginOption, Policy
from hekla.engine.session import Call, Session
from hekla.engine.world import World


def cycle(
    state: ClusterState,
    policy: Policy,
    now: float,
    call: Call | None = None,
    *,
    world: World | None = None,
    is_detailed: bool = False,
    opened: Callable[[Session], None] | None = None,
) -> Decisions:
    """Decide once. `now` is in seconds since the epoch; `call` asks other programs for the plugins that do.

    `world`: what was kept from the last cycle of the same cluster, which saves looking at what did not change.
    `is_detailed`: also the phases before the close, and how many tasks of each job stand where.
    `opened` is given the session when all is ready for the first action: to look at it, and to leave it as it is.
    """
    with _without_collection():
        world = World() if world is None else world
        world.follow(state)
        return _decide(world, policy, partial(Session, world, now=now, call=call), opened, is_detailed=is_detailed)


def opened_session(state: ClusterState, policy: Policy, now: float, *, world: World | None = None) -> Session:
    """A session in which the plugins have their say and nothing is done: to ask them.

    `world` as for a cycle; the session is good until it follows another state. Raises Failed where a cycle would decide
    nothing.
    """
    with _without_collection():
        world = World() if world is None else world
        world.follow(state)
        while True:
            session = Session(world, policy, now=now)
            try:
                _open_all(session)
            except Failed as failure:
                smaller = _without(session, failure)
                world.rewind()
                if smaller is None:
                    raise
                policy = smaller
            else:
                return session


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


def _decide(
    world: World,
    policy: Policy,
    session_of: Callable[[Policy], Session],
    opened: Callable[[Session], None] | None,
    *,
    is_detailed: bool,
) -> Decisions:
    faults: list[Fault] = []
    while True:
        session = session_of(policy)
        try:
            _run(session, opened)
            decisions = replace(_close(session, is_detailed=is_detailed), faults=tuple(faults))
            break
        except Failed as failure:
            smaller = _without(session, failure)
            faults.append(failure.fault(is_skipped=smaller is not None))
            world.rewind()
            if smaller is None:
                decisions = _nothing(world, faults)
                break
            policy = smaller
    return _with_refused(decisions, world.refused) if world.refused else decisions


def _run(session: Session, opened: Callable[[Session], None] | None) -> None:
    _open_all(session)
    if opened is not None:
        opened(session)
    for name in session.policy.actions:
        try:
            registry.actions()[name].execute(session, session.policy.configurations.get(name, {}))
        except Failed:
            raise
        except Exception as error:
            raise Failed(name, "action", None, error) from error


def _open_all(session: Session) -> None:
    bounds.open_session(session)
    for tier in session.policy.tiers:
        for option in tier:
            _open(session, option)


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


def _nothing(world: World, faults: list[Fault]) -> Decisions:
    """Everything stays as it is; who waits, waits for the policy to be repaired."""
    reason = Reason(Cause.POLICY, "", faults[-1].name, "plugin_failed")
    return Decisions(
        phases={uid: gang.phase for uid, gang in world.gangs.items()},
        reasons={uid: (reason,) for uid, gang in world.unsettled.items()},
        faults=tuple(faults),
    )


def _with_refused(decisions: Decisions, refused: Mapping[str, tuple[Problem, ...]]) -> Decisions:
    reason = (Reason(Cause.POLICY, "", "checks", "not_valid", ever=False),)
    return replace(decisions, refused=refused, reasons={**decisions.reasons, **dict.fromkeys(refused, reason)})


def _close(session: Session, *, is_detailed: bool) -> Decisions:
    phases = phases_at_close(session.gangs, session.policy, session.answers(Point.UNSCHEDULABLE))
    told = session.gangs if is_detailed else {}
    before = {uid: phase_before_close(gang) for uid, gang in told.items()}
    pipelined = {
        member.task.uid: member.node
        for gang in _that_may_wait(session)
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
        nominated={
            task: node
            for task, node in session.nominated.items()
            if session.policy.follows_volcano or pipelined.get(task) == node
        },
        phases=phases,
        phases_before_close={uid: phase for uid, phase in before.items() if phase is not phases[uid]},
        counts={uid: {status: n for status, n in gang.count.items() if n} for uid, gang in told.items()},
        reasons={uid: reasons for uid, reasons in session.reasons.items() if reasons},
    )


def _that_may_wait(session: Session) -> Iterable[Gang]:
    """What the session promised a place, and who came with such a promise."""
    return {**session.world.singles, **session.world.moved}.values()
