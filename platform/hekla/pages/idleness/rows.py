"""The signals of a session or a job as rows: each against its limit, in words and as a chart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.utils.translation import gettext as _

from hekla.apps.idleness import labels
from hekla.apps.idleness.job_selectors import JobActivity
from hekla.apps.idleness.selectors import SessionActivity
from hekla.domain.idleness import MINUTE, ActiveMinute, IdleRule, Signal, SignalEvidence


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a row's chart, in per cent of its width. `kind`: active, or unknown."""

    begin: float
    width: float
    kind: str


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal against its limit, in words and as a chart."""

    label: str
    marks: Sequence[Mark]
    limit: str
    most: str
    active_at: datetime | None


def signal_rows(found: SessionActivity | JobActivity, since: datetime, now: datetime) -> Iterator[SignalRow]:
    """The signals that were recorded, with charts of the time since then."""
    rule = found.rule or IdleRule(timedelta(), timedelta(), {})
    evidence = {one.signal: one for one in found.verdict.evidence} if found.verdict else {}
    signals = [signal for signal in Signal if any(signal in minute.amounts for minute in found.minutes)]
    for signal in signals:
        limit = rule.limit(signal)
        about: SignalEvidence | None = evidence.get(signal)
        yield SignalRow(
            label=str(labels.SIGNALS[signal]),
            marks=list(_marks(found.minutes, signal, limit, since, now)),
            limit=_("does not count") if limit is None else labels.amount(signal, limit),
            most=labels.amount(signal, about.most if about else _most(found.minutes, signal)),
            active_at=about.active_at if about else None,
        )


def _most(minutes: Sequence[ActiveMinute], signal: Signal) -> float | None:
    return max((amount for one in minutes if (amount := one.amounts.get(signal)) is not None), default=None)


def _marks(
    minutes: Sequence[ActiveMinute], signal: Signal, limit: float | None, since: datetime, now: datetime
) -> Iterator[Mark]:
    """Stretches of active and of unknown minutes; neighbours are one mark."""
    whole = max((now - since) / MINUTE, 1.0)
    places = ((int((one.at - since) / MINUTE), _kind(one.amounts.get(signal), limit)) for one in minutes)
    numbered = ((place - number, kind, place) for number, (place, kind) in enumerate(places))
    for (_run, kind), group in groupby(numbered, key=lambda one: one[:2]):
        if kind:
            run = [place for _offset, _kind_of, place in group]
            begin = max(0.0, 100 * run[0] / whole)
            yield Mark(round(begin, 2), round(min(100.0 - begin, max(0.5, 100 * len(run) / whole)), 2), kind)


def _kind(amount: float | None, limit: float | None) -> str:
    if amount is None:
        return "unknown"
    return "active" if limit is not None and amount >= limit else ""
