"""One scheduling cycle: state and policy in, decisions out. No clock, no randomness, no I/O.

1. update the cache with what changed; refuse what is invalid (`scheduler_cache`, `validation`)
2. open the session: tenant quotas, the job orders of queues, then the plugins tier by tier
3. run the actions in the order of the policy
4. close: the phase of every job, and the reasons of those that wait

If a plugin or an action fails, the cycle starts again without it, or decides nothing (`faults`).
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from hekla.engine import job_order, registry, tenant_quotas
from hekla.engine.actions import enqueue
from hekla.engine.decisions import Cause, Decisions, ExtensionFault, PendingReason
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.faults import ExtensionFailed, guarded_listener, is_action_skipped, is_skipped
from hekla.engine.job_phases import phase_before_close, phases_at_close
from hekla.engine.model import ClusterState, PodStatus
from hekla.engine.policy import PluginOption, SchedulerPolicy
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Call, Session
from hekla.engine.share_rounds import ShareNotes
from hekla.engine.shared_values import SharedValues


def cycle(
    state: ClusterState,
    policy: SchedulerPolicy,
    now: float,
    call: Call | None = None,
    *,
    cache: SchedulerCache | None = None,
    is_detailed: bool = False,
    on_open: Callable[[Session], None] | None = None,
    session_class: Callable[..., Session] = Session,
) -> Decisions:
    """Run one cycle. `now` in seconds since the epoch; `call` lets extender plugins call other programs.

    `cache`: the cache from the cluster's last cycle; unchanged objects are then not examined again. `is_detailed`: also
    report phases before the close and pod counts by status. `on_open` gets the session before the first action; it must
    not change it. `session_class`: makes the session, for a session that notes what actions do (`cycle_trace`).
    """
    with _without_collection():
        cache = SchedulerCache() if cache is None else cache
        cache.update(state)
        session_of = partial(session_class, cache, now=now, call=call)
        return _decide(cache, policy, session_of, on_open, is_detailed=is_detailed)


def open_session(
    state: ClusterState, policy: SchedulerPolicy, now: float, *, cache: SchedulerCache | None = None
) -> Session:
    """A session with all plugins open and no action run, for queries.

    `cache`: as in `cycle`; the session is valid until the cache is updated. Raises ExtensionFailed if a plugin fails
    and may not be skipped.
    """
    with _without_collection():
        cache = SchedulerCache() if cache is None else cache
        cache.update(state)
        while True:
            session = Session(cache, policy, now=now)
            session.share_notes = ShareNotes()
            try:
                _open_all(session, is_query=True)
            except ExtensionFailed as failure:
                smaller = _without(session, failure)
                cache.roll_back()
                if smaller is None:
                    raise
                policy = smaller
            else:
                return session


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch the garbage collector off: a cycle makes many objects and hardly any reference cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decide(
    cache: SchedulerCache,
    policy: SchedulerPolicy,
    session_of: Callable[[SchedulerPolicy], Session],
    on_open: Callable[[Session], None] | None,
    *,
    is_detailed: bool,
) -> Decisions:
    faults: list[ExtensionFault] = []
    while True:
        session = session_of(policy)
        try:
            _run(session, on_open)
            decisions = replace(_close(session, is_detailed=is_detailed), faults=tuple(faults))
            break
        except ExtensionFailed as failure:
            smaller = _without(session, failure)
            faults.append(failure.fault(is_skipped=smaller is not None))
            cache.roll_back()
            if smaller is None:
                decisions = _nothing(cache, faults)
                break
            policy = smaller
        finally:
            session.end()
    if not cache.refused:
        return decisions
    invalid = (PendingReason(Cause.POLICY, "", "checks", "not_valid", ever=False),)
    reasons, of_refused = decisions.reasons, dict.fromkeys(cache.refused, invalid)
    merged = reasons.with_own(of_refused) if isinstance(reasons, SharedValues) else {**reasons, **of_refused}
    return replace(decisions, refused=cache.refused, reasons=merged)


def _run(session: Session, on_open: Callable[[Session], None] | None) -> None:
    _open_all(session)
    if on_open is not None:
        on_open(session)
    for name in session.policy.actions:
        if session.only_admits and name != enqueue.NAME:
            continue
        session.action = name
        try:
            registry.actions()[name].execute(session, session.policy.configurations.get(name, {}))
        except ExtensionFailed:
            raise
        except Exception as error:
            raise ExtensionFailed(name, "action", None, error) from error


def _open_all(session: Session, *, is_query: bool = False) -> None:
    tenant_quotas.open_session(session, is_query=is_query)
    job_order.open_session(session)
    for tier in session.policy.tiers:
        for option in tier:
            if not (session.only_admits and registry.looks_at_nodes_only(option.name)):
                _open(session, option)


def _open(session: Session, option: PluginOption) -> None:
    listening, closing = len(session.on_change), len(session.on_close)
    try:
        registry.plugins()[option.name].open_session(session, option)
    except Exception as error:
        raise ExtensionFailed(option.name, "open", option, error) from error
    session.on_change[listening:] = [guarded_listener(option, "change", one) for one in session.on_change[listening:]]
    session.on_close[closing:] = [guarded_listener(option, "close", one) for one in session.on_close[closing:]]


def _without(session: Session, failure: ExtensionFailed) -> SchedulerPolicy | None:
    """The policy without the failed plugin or action; None if it may not be skipped."""
    policy, option = session.policy, failure.option
    if option is None:
        name = failure.fault(is_skipped=False).name
        rest = tuple(action for action in policy.actions if action != name)
        return replace(policy, actions=rest) if is_action_skipped(policy.configurations.get(name, {})) else None
    if not is_skipped(option, session.points_used_by(option)):
        return None
    return replace(policy, tiers=tuple(tuple(one for one in tier if one is not option) for tier in policy.tiers))


def _nothing(cache: SchedulerCache, faults: list[ExtensionFault]) -> Decisions:
    """Decisions that change nothing; waiting jobs get the reason `plugin_failed`."""
    reason = PendingReason(Cause.POLICY, "", faults[-1].name, "plugin_failed")
    return Decisions(
        phases={uid: job.phase for uid, job in zip(cache.jobs, cache.jobs.stand_ins(), strict=True)},
        reasons=dict.fromkeys(cache.unsettled_jobs, (reason,)),
        faults=tuple(faults),
    )


def _close(session: Session, *, is_detailed: bool) -> Decisions:
    phases = phases_at_close(session.cache, session.policy, session.functions(ExtensionPoint.UNSCHEDULABLE))
    detailed = session.jobs if is_detailed else {}
    before = {uid: phase_before_close(job) for uid, job in detailed.items()}
    may_wait = {**session.cache.unique_jobs, **session.cache.changed_jobs}
    pipelined = {
        pod.spec.uid: pod.node
        for job in may_wait.values()
        if job.waiting_count
        for pod in job.pods
        if pod.status is PodStatus.PIPELINED
    }
    for closed in session.on_close:
        closed()
    return Decisions(
        binds=tuple(session.binds),
        evictions=tuple(session.evictions),
        pipelined=pipelined,
        nominated={
            uid: node
            for uid, node in session.nominated.items()
            if session.policy.follows_volcano or pipelined.get(uid) == node
        },
        phases=phases,
        phases_before_close={uid: phase for uid, phase in before.items() if phase is not phases[uid]},
        counts={uid: {status: n for status, n in job.count_by_status.items() if n} for uid, job in detailed.items()},
        reasons=session.reasons.all(),
    )
