"""What a rule would say about the present values, and about the last days where the log has them. It writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.apps.alerts import measures
from hekla.apps.alerts.measures import AlertSubject
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.alerts import AlertComparison, AlertEpisode, replay

MOST_LISTED = 20
PAST = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class PresentValue:
    """The value of a subject now, and whether it is beyond the threshold."""

    subject: AlertSubject
    value: float
    is_breach: bool


@dataclass(frozen=True, slots=True)
class RulePreview:
    """`values`: the worst first, at most `MOST_LISTED` of `count`; `breaches`: how many of all fire.

    `no_data`: names of clusters without data.
    """

    values: Sequence[PresentValue]
    count: int
    breaches: int
    no_data: Sequence[str]


@dataclass(frozen=True, slots=True)
class RulePast:
    """When the rule would have fired since `since`, newest first, at most `MOST_LISTED` of `count`.

    `is_possible`: whether the past values of the measure are known.
    """

    is_possible: bool
    since: datetime
    count: int = 0
    episodes: Sequence[AlertEpisode] = ()


def now_of(spec: AlertRuleSpec, tenant: Tenant | None, *, now: datetime) -> RulePreview:
    """The present values. The caller has checked the right to set such a rule. Raises NotFound, Invalid."""
    scope, condition = measures.scope_of(spec, tenant, now=now), spec.condition
    read = measures.find(spec.measure).read(scope)
    found = [PresentValue(subject, value, condition.is_breach(value)) for subject, value in read.values.items()]
    sign = -1 if condition.comparison is AlertComparison.ABOVE else 1
    found.sort(key=lambda one: (sign * one.value, one.subject.name))
    return RulePreview(
        values=found[:MOST_LISTED],
        count=len(found),
        breaches=sum(one.is_breach for one in found),
        no_data=[scope.name_of(pk) for pk in sorted(read.lost)],
    )


def past_of(spec: AlertRuleSpec, tenant: Tenant | None, *, now: datetime) -> RulePast:
    """The last days. The caller has checked the right to set such a rule. Raises NotFound, Invalid."""
    measure, since = measures.find(spec.measure), now - PAST
    if measure.past is None:
        return RulePast(is_possible=False, since=since)
    series = measure.past(measures.scope_of(spec, tenant, now=now), since)
    found = [
        episode
        for subject, of_one in series.items()
        for episode in replay(spec.condition, subject.name, of_one, now=now)
    ]
    found.sort(key=lambda one: one.begin, reverse=True)
    return RulePast(is_possible=True, since=since, count=len(found), episodes=found[:MOST_LISTED])
