"""The idle rule: what never ends a session, whatever the record says."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.idleness import (
    GAP,
    MINUTE,
    SETTLE,
    ActiveMinute,
    IdleRule,
    IdleStep,
    IdleWarning,
    KeepCause,
    Signal,
    judge,
    strictest,
)

BEGIN = datetime(2026, 11, 20, 8, tzinfo=UTC)
LIMITS = {Signal.CPU: 20.0, Signal.GPU: 5.0}
SIGNALS = (Signal.REQUESTS, Signal.KERNEL, Signal.CPU, Signal.NETWORK)


def rule(idle: int = 10, grace: int = 5) -> IdleRule:
    return IdleRule(idle * MINUTE, grace * MINUTE, LIMITS)


def is_active(minute: ActiveMinute, by: IdleRule) -> bool:
    """By the words of the rule: a signal that counts reaches its limit, or is not known."""
    amounts = {signal: amount for signal, amount in minute.amounts.items() if by.limit(signal) is not None}
    return any(amount is None or amount >= by.limit(signal) for signal, amount in amounts.items())


quiet = st.fixed_dictionaries({Signal.REQUESTS: st.just(0), Signal.CPU: st.sampled_from([0, 19])})
anything = st.dictionaries(st.sampled_from(SIGNALS), st.sampled_from([None, 0, 1, 19, 20, 500]))
steps = st.lists(st.tuples(st.sampled_from([1, 1, 1, 1, 2, 4]), quiet | quiet | quiet | anything), max_size=60)
rules = st.builds(rule, st.integers(3, 20), st.integers(1, 30))


def course(found: list[tuple[int, dict[Signal, float | None]]]) -> list[ActiveMinute]:
    """A record with gaps: each minute so many minutes after the one before."""
    minutes, at = [], BEGIN - MINUTE
    for step, amounts in found:
        at += step * MINUTE
        minutes.append(ActiveMinute(at, amounts))
    return minutes


@given(rules, steps, st.integers(0, 40), st.none() | st.integers(0, 120))
def test_session_ends_only_after_a_warning_its_grace_and_an_idle_time_that_is_all_known(by, found, wait, keep) -> None:
    """As the watch does it: one look each minute, which acts on what the rule says."""
    minutes = course(found)
    keep_until = None if keep is None else BEGIN + keep * MINUTE
    last = minutes[-1].at if minutes else BEGIN
    warning = None
    now = BEGIN
    while now <= last + MINUTE + wait * MINUTE:
        known = [one for one in minutes if one.at <= now]
        verdict = judge(by, known, begin=BEGIN, keep_until=keep_until, warning=warning, now=now)
        active = [one for one in known if one.at + MINUTE > now - by.idle and is_active(one, by)]
        starts = [BEGIN, *(one.at + MINUTE for one in known)]
        gaps = [b for a, b in zip(starts, [*(one.at for one in known), now], strict=True) if b - a > GAP]
        if active or now - BEGIN < by.idle or any(gap > now - by.idle for gap in gaps) or (keep_until or now) > now:
            assert verdict.step is IdleStep.KEEP
        if verdict.step is IdleStep.WARN:
            assert verdict.next_at == now + by.grace
            warning = IdleWarning(now, verdict.next_at)
        if verdict.step is IdleStep.END:
            assert warning is not None
            assert now >= warning.at + by.grace + SETTLE
            assert not any(is_active(one, by) for one in known if one.at + MINUTE > warning.at - by.idle)
            return
        now += MINUTE


def test_one_session_from_its_start_to_its_end() -> None:
    minutes = [ActiveMinute(BEGIN + n * MINUTE, {Signal.KERNEL: n < 3, Signal.CPU: 2}) for n in range(30)]

    def at(minute: float, **more):
        known = [one for one in minutes if one.at <= BEGIN + minute * MINUTE]
        return judge(rule(), known, begin=BEGIN, now=BEGIN + minute * MINUTE, **more)

    assert (at(2).step, at(2).cause, at(2).signal) == (IdleStep.KEEP, KeepCause.SIGNAL, Signal.KERNEL)
    assert (at(12.9).step, at(12.9).next_at) == (IdleStep.KEEP, BEGIN + 13 * MINUTE)
    warned = at(13)
    assert (warned.step, warned.next_at) == (IdleStep.WARN, BEGIN + 18 * MINUTE)
    warning = IdleWarning(BEGIN + 13 * MINUTE, warned.next_at)
    assert at(18, warning=warning).step is IdleStep.WAIT
    assert at(18.5, warning=warning).step is IdleStep.END
    assert at(29, warning=warning).step is IdleStep.WARN  # the rule was off meanwhile
    wanted = {"warning": warning, "keep_until": BEGIN + 20 * MINUTE}
    assert (at(19, **wanted).step, at(19, **wanted).next_at) == (IdleStep.KEEP, BEGIN + 20 * MINUTE)
    assert at(20, **wanted).step is IdleStep.WARN  # once more, with a new grace time
    evidence = {one.signal: one for one in warned.evidence}
    assert (evidence[Signal.CPU].limit, evidence[Signal.CPU].most, evidence[Signal.CPU].active_at) == (20.0, 2, None)
    assert evidence[Signal.KERNEL].active_at == BEGIN + 3 * MINUTE


@pytest.mark.parametrize(("amount", "cause"), [(None, KeepCause.UNKNOWN), (20.0, KeepCause.SIGNAL)])
def test_what_is_not_known_keeps_a_session_as_what_is_active_does(amount: float | None, cause: KeepCause) -> None:
    minutes = [ActiveMinute(BEGIN + n * MINUTE, {Signal.CPU: amount, Signal.NETWORK: None}) for n in range(60)]
    found = judge(rule(), minutes, begin=BEGIN, now=BEGIN + timedelta(hours=1))
    assert (found.step, found.cause, found.signal) == (IdleStep.KEEP, cause, Signal.CPU)
    uncounted = judge(IdleRule(10 * MINUTE, MINUTE, {}), minutes, begin=BEGIN, now=BEGIN + timedelta(hours=1))
    assert uncounted.step is IdleStep.WARN  # neither signal counts


def test_no_record_is_a_gap() -> None:
    found = judge(rule(), [], begin=BEGIN, now=BEGIN + timedelta(days=1))
    assert (found.step, found.cause) == (IdleStep.KEEP, KeepCause.GAP)


def test_strictest_rule_satisfies_all() -> None:
    platform = IdleRule(120 * MINUTE, 30 * MINUTE, {Signal.CPU: 20.0, Signal.GPU: 5.0})
    tenant = IdleRule(60 * MINUTE, 60 * MINUTE, {Signal.CPU: 50.0})
    assert strictest([platform, tenant]) == IdleRule(60 * MINUTE, 30 * MINUTE, {Signal.CPU: 50.0})
    assert strictest([tenant]) == tenant
    assert strictest([]) is None
