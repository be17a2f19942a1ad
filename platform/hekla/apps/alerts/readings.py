"""What a rule measures now, against its states: the status and the changes of every subject that is not normal."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from hekla.apps.alerts import measures
from hekla.apps.alerts.measures import AlertScope, AlertSubject, HeldByClusters, MeasuredValues, SubjectKind
from hekla.apps.alerts.models import Alert, AlertRule
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.alerts import (
    WINDOW,
    Absence,
    AlertCondition,
    AlertReading,
    AlertReason,
    AlertState,
    AlertStatus,
    AlertTransition,
    advance,
)


@dataclass(frozen=True, slots=True)
class AlertOutcome:
    """The status of a subject after an evaluation, and the changes that led to it. `alert`: its row, if it has one."""

    subject: str
    name: str
    cluster_id: int | None
    alert: Alert | None
    status: AlertStatus
    passed: tuple[AlertTransition, ...]
    value: float | None

    @property
    def is_normal(self) -> bool:
        """Whether nothing needs to be stored about it."""
        return self.status.state is AlertState.NORMAL and self.status.lost_at is None

    @property
    def differs(self) -> bool:
        """Whether the state in its row is not as it should be."""
        if self.alert is None:
            return not self.is_normal
        return bool(self.passed) or self.alert.status != self.status

    @property
    def has_new_value(self) -> bool:
        """Whether only the value in its row is not as it should be."""
        return self.alert is not None and not self.differs and self.alert.value != self.value


@dataclass(frozen=True, slots=True)
class ScopeReading:
    """A scope, and the values that were read in it."""

    scope: AlertScope
    measured: MeasuredValues


class Readings:
    """Reads each measure once for all rules with the same scope."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._known: dict[tuple[object, ...], ScopeReading] = {}
        self._held: HeldByClusters = {}

    def of(self, rule: AlertRule, spec: AlertRuleSpec) -> ScopeReading:
        """What the rule measures now. Raises NotFound, Invalid if it cannot be read any more."""
        measure = measures.find(spec.measure)
        *place, window = spec.scope
        key = (rule.tenant_id, *place, window if measure.has_window else None)
        if key not in self._known:
            scope = measures.scope_of(spec, rule.tenant, now=self.now, held=self._held)
            self._known[key] = ScopeReading(scope, measure.read(scope))
        return self._known[key]


def watched_since(rule: AlertRule, now: datetime) -> datetime:
    """Since when the rule is evaluated without a gap, this evaluation included."""
    if rule.looked_at is None or rule.watched_since is None or now - rule.looked_at > WINDOW:
        return now
    return rule.watched_since


def outcomes(
    condition: AlertCondition, reading: ScopeReading, alerts: Iterable[Alert], *, since: datetime
) -> Iterator[AlertOutcome]:
    """The outcome for every subject that has a row, or needs one. `since`: see `watched_since`."""
    known = {alert.subject: alert for alert in alerts}
    now = reading.scope.now
    for subject, value in reading.measured.values.items():
        alert = known.pop(subject.text, None)
        if alert is not None or condition.is_breach(value):
            yield _outcome(condition, subject, alert, value, since, now)
    lost = {measures.of_cluster(one).text: one for one in reading.scope.clusters if one.pk in reading.measured.lost}
    for alert in known.values():
        is_lost = alert.cluster_id in reading.measured.lost
        kind, _colon, key = alert.subject.partition(":")
        lost.pop(alert.subject, None)
        subject = AlertSubject(SubjectKind(kind), key, alert.name, alert.cluster_id)
        yield _outcome(condition, subject, alert, Absence.NO_DATA if is_lost else Absence.GONE, since, now)
    for cluster in lost.values():
        yield _outcome(condition, measures.of_cluster(cluster), None, Absence.NO_DATA, since, now)


def _outcome(
    condition: AlertCondition,
    subject: AlertSubject,
    alert: Alert | None,
    reading: AlertReading,
    since: datetime,
    now: datetime,
) -> AlertOutcome:
    status, passed = advance(condition, alert.status if alert else None, reading, watched_since=since, now=now)
    value = reading if isinstance(reading, float) else alert.value if alert else None
    steps = tuple(_with_reason(one, alert) for one in passed)
    return AlertOutcome(subject.text, subject.name, subject.cluster_id, alert, status, steps, value)


def _with_reason(step: AlertTransition, alert: Alert | None) -> AlertTransition:
    """A cluster without data that never fired does not disappear: it has data again."""
    if step.old is AlertState.NO_DATA and step.reason is AlertReason.GONE and alert is not None and not alert.is_open:
        return AlertTransition(step.old, step.new, AlertReason.DATA)
    return step
