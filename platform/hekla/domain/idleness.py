"""The idle rule: when a session ends because nobody and nothing uses it.

The input is a record of minutes with the amounts of each signal. A minute is active if one signal that counts reaches
its limit. What is not known counts as active: a signal that cannot be read, a gap in the record, and everything before
the record. So missing data never ends a session.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

MINUTE = timedelta(minutes=1)
GAP = timedelta(minutes=2)
"""A longer time without a record is unknown."""
SETTLE = timedelta(seconds=30)
"""After a deadline: activity of its last seconds is recorded a little later."""
LATE = timedelta(minutes=10)
"""A warning whose end is longer ago was for another time, when the rule was on: there is a new one."""


class Signal(StrEnum):
    """What shows that a session is in use. The last three count from a limit on, the others always."""

    REQUESTS = "requests"  # requests of a person, without the polling of tools
    INPUT = "input"  # messages that the browser sends on websockets, without those that keep them open
    KERNEL = "kernel"  # busy kernels
    TERMINAL = "terminal"  # bytes typed in the owner's terminal in the pod
    SSH = "ssh"  # bytes of input of the owner's SSH connections to the pod
    CPU = "cpu"  # of the pod, in per cent of one core
    GPU = "gpu"  # of the pod, in per cent of one GPU
    NETWORK = "network"  # what the session sends to the browser, in KiB per minute


CHOICES = ("idle_after_seconds", "idle_grace_seconds")
"""The fields of a job's document with the times that it chose."""
LIMITED = (Signal.CPU, Signal.GPU, Signal.NETWORK)


@dataclass(frozen=True, slots=True)
class IdleRule:
    """After so long without activity there is a warning, and after the grace time the end.

    `limits`: from which amount on one of LIMITED counts as activity. Without a limit it does not count. `is_chosen`:
    the job itself chose one of the times.
    """

    idle: timedelta
    grace: timedelta
    limits: Mapping[Signal, float]
    is_chosen: bool = False

    def limit(self, signal: Signal) -> float | None:
        """From which amount on the signal counts; None if it does not count."""
        return self.limits.get(signal) if signal in LIMITED else 1.0


@dataclass(frozen=True, slots=True)
class ActiveMinute:
    """The amounts of signals in the minute from `at` on; None: not known. Signals that do not apply are left out."""

    at: datetime
    amounts: Mapping[Signal, float | None]


@dataclass(frozen=True, slots=True)
class IdleWarning:
    """A warning of `at`: the end comes at `ends_at` if nothing happens until then."""

    at: datetime
    ends_at: datetime


class IdleStep(StrEnum):
    """What is to be done about a session now."""

    KEEP = "keep"
    WARN = "warn"
    WAIT = "wait"  # it has been warned
    END = "end"


class KeepCause(StrEnum):
    """Why it is not idle for longer."""

    SIGNAL = "signal"  # a signal was active
    UNKNOWN = "unknown"  # a signal could not be read
    GAP = "gap"  # nothing was recorded
    START = "start"  # it became ready then


@dataclass(frozen=True, slots=True)
class SignalEvidence:
    """One signal against its limit. `limit`: None if it does not count.

    `active_at`, `unknown_at`: the end of its last minute of that kind; None: there was none. `most`: its highest amount
    since the session is idle; None: not known.
    """

    signal: Signal
    limit: float | None
    active_at: datetime | None
    unknown_at: datetime | None
    most: float | None


@dataclass(frozen=True, slots=True)
class IdleVerdict:
    """What is to be done, and why. `signal`: the one that kept it, or was unknown, until `idle_since`.

    `next_at`: when the next step is due if nothing happens: the warning, or the end.
    """

    step: IdleStep
    idle_since: datetime
    next_at: datetime
    cause: KeepCause
    signal: Signal | None
    evidence: tuple[SignalEvidence, ...]


def strictest(rules: Sequence[IdleRule]) -> IdleRule | None:
    """The rule that satisfies all of these: the shortest times, and for each signal the highest limit.

    A signal counts only if all rules count it. None without a rule.
    """
    if not rules:
        return None
    common = set.intersection(*(set(rule.limits) for rule in rules))
    return IdleRule(
        idle=min(rule.idle for rule in rules),
        grace=min(rule.grace for rule in rules),
        limits={one: max(rule.limits[one] for rule in rules) for one in LIMITED if one in common},
    )


def narrowed(rule: IdleRule | None, spec: Mapping[str, Any], usual: IdleRule) -> IdleRule | None:
    """The rule with the times that the job with this document chose, if they are shorter.

    Without a rule, the choice of a job is a rule for it alone, with the limits of `usual`, and with its grace time
    unless the job chose one.
    """
    seconds = spec.get("idle_after_seconds")
    if seconds is None:
        return rule
    base = rule or usual
    idle = timedelta(seconds=seconds)
    grace = timedelta(seconds=spec["idle_grace_seconds"]) if "idle_grace_seconds" in spec else base.grace
    if rule is not None:
        idle, grace = min(idle, rule.idle), min(grace, rule.grace)
    is_chosen = rule is None or (idle, grace) != (rule.idle, rule.grace)
    return replace(base, idle=idle, grace=grace, is_chosen=is_chosen)


def is_in_use(rule: IdleRule, minutes: Sequence[ActiveMinute]) -> bool:
    """Whether something active or unknown is among these minutes, or nothing at all: then nothing is to be decided."""
    amounts = [
        (limit, amount)
        for minute in minutes
        for signal, amount in minute.amounts.items()
        if (limit := rule.limit(signal)) is not None
    ]
    return not amounts or any(amount is None or amount >= limit for limit, amount in amounts)


def judge(
    rule: IdleRule,
    minutes: Sequence[ActiveMinute],
    *,
    begin: datetime,
    keep_until: datetime | None = None,
    warning: IdleWarning | None = None,
    now: datetime,
) -> IdleVerdict:
    """What the rule says about a session now. It reads no clock.

    `minutes`: its record, oldest first. `begin`: when it became ready. `keep_until`: no warning before, because
    a person wants it. A warning from before the last activity is void, so the grace time begins anew.
    """
    signals = {signal for minute in minutes for signal in minute.amounts}
    counted = {signal: limit for signal in Signal if signal in signals and (limit := rule.limit(signal)) is not None}
    causes: list[tuple[datetime, KeepCause, Signal | None]] = [(begin, KeepCause.START, None)]
    if (gap := _gap_end(minutes, begin, now)) is not None:
        causes.append((gap, KeepCause.GAP, None))
    for signal, limit in counted.items():
        active, unknown = _last(minutes, signal, limit)
        causes += [(at, KeepCause.SIGNAL, signal) for at in (active,) if at]
        causes += [(at, KeepCause.UNKNOWN, signal) for at in (unknown,) if at]
    since, cause, source = max(causes, key=lambda one: one[0])
    since = min(since, now)
    due = max(since + rule.idle, keep_until or since)
    step, next_at = _step(rule, due, warning, now)
    evidence = tuple(
        SignalEvidence(one, counted.get(one), *_last(minutes, one, counted.get(one)), _most(minutes, one, since))
        for one in Signal
        if one in signals
    )
    return IdleVerdict(step, since, next_at, cause, source, evidence)


def _step(rule: IdleRule, due: datetime, warning: IdleWarning | None, now: datetime) -> tuple[IdleStep, datetime]:
    if now < due:
        return IdleStep.KEEP, due
    if warning is None or warning.at < due or now > warning.ends_at + LATE:
        return IdleStep.WARN, now + rule.grace
    return (IdleStep.END if now >= warning.ends_at + SETTLE else IdleStep.WAIT), warning.ends_at


def _gap_end(minutes: Sequence[ActiveMinute], begin: datetime, now: datetime) -> datetime | None:
    """The end of the last time without a record; None if there was none since the start."""
    ends = [begin, *(minute.at + MINUTE for minute in minutes)]
    starts = [*(minute.at for minute in minutes), now]
    return max((start for end, start in zip(ends, starts, strict=True) if start - end > GAP), default=None)


def _last(
    minutes: Sequence[ActiveMinute], signal: Signal, limit: float | None
) -> tuple[datetime | None, datetime | None]:
    """The ends of the last active and of the last unknown minute of a signal. One without a limit is never active."""
    active = unknown = None
    for minute in reversed(minutes):
        if signal not in minute.amounts:
            continue
        amount = minute.amounts[signal]
        if amount is None:
            unknown = unknown or minute.at + MINUTE
        elif limit is not None and amount >= limit:
            active = active or minute.at + MINUTE
        if active and unknown:
            break
    return active, unknown


def _most(minutes: Sequence[ActiveMinute], signal: Signal, since: datetime) -> float | None:
    """The highest amount since then."""
    amounts = [minute.amounts.get(signal) for minute in minutes if minute.at >= since]
    return max((amount for amount in amounts if amount is not None), default=None)
