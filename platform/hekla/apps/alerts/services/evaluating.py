"""Evaluates the rules. States and actions are rows, so nothing is lost when the console stops.

A rule whose states stay as they are costs only reads. Else its row is locked and it is judged again, so of several
processes one writes.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from hekla.apps.alerts import measures, selectors
from hekla.apps.alerts.models import MAX_FAULT, Alert, AlertChange, AlertRule
from hekla.apps.alerts.owner import acting_owner, record_of
from hekla.apps.alerts.readings import AlertOutcome, Readings, ScopeReading, outcomes, watched_since
from hekla.apps.alerts.services.planning import mark_flapping, plan_clearing, plan_firing
from hekla.apps.event_log.services import unit_of_work
from hekla.domain import events
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.alerts import AlertState, due_at
from hekla.domain.errors import HeklaError

log = logging.getLogger(__name__)
EACH = timedelta(seconds=10)
"""Between two evaluations of values that change without an event."""
_AT_ONCE = 500
_OPEN = frozenset({AlertState.FIRING, AlertState.RECOVERING})


def evaluate(*, now: datetime) -> datetime | None:
    """Evaluate all enabled rules. Returns when something may change without an event; None: never."""
    rules = list(AlertRule.objects.filter(is_enabled=True).select_related("tenant", "owner").order_by("pk"))
    alerts: dict[int, list[Alert]] = defaultdict(list)
    for alert in Alert.objects.filter(rule__in=rules).order_by("pk"):
        alerts[alert.rule_id].append(alert)
    readings, dues = Readings(now), list[datetime]()
    for rule in rules:
        dues += _look(rule, alerts[rule.pk], readings, now)
    _note(rules, now)
    return min(dues, default=None)


def _note(rules: Sequence[AlertRule], now: datetime) -> None:
    """Store that they were evaluated. Since when they are watched changes only after a gap."""
    anew = [rule.pk for rule in rules if watched_since(rule, now) == now]
    AlertRule.objects.filter(pk__in=anew).update(watched_since=now)
    AlertRule.objects.filter(pk__in=[rule.pk for rule in rules]).update(looked_at=now)


def _look(rule: AlertRule, alerts: Sequence[Alert], readings: Readings, now: datetime) -> list[datetime]:
    """Evaluate one rule. Returns when it may change without an event. One that fails stops no other."""
    try:
        spec = selectors.spec_of(rule)
        reading = readings.of(rule, spec)
        since = watched_since(rule, now)
        found = list(outcomes(spec.condition, reading, alerts, since=since))
        if any(one.differs or _is_unacted(rule, one, now) for one in found):
            found = _apply(rule, spec, reading, now)
        else:
            _store_values(found)
        _set_fault(rule, "")
    except HeklaError as error:
        _set_fault(rule, error.message)
        return []
    except Exception:  # a mistake in one measure must not silence the others
        log.exception("alert rule %s cannot be evaluated", rule.uid)
        return []
    dues = [due for one in found if (due := due_at(spec.condition, one.status, watched_since=since))]
    if measures.find(spec.measure).changes_by_time:
        dues.append(now + EACH)
    if rule.is_silent(now) and rule.silenced_until:
        dues.append(rule.silenced_until)
    return dues


def _set_fault(rule: AlertRule, fault: str) -> None:
    if rule.fault != fault[:MAX_FAULT]:
        AlertRule.objects.filter(pk=rule.pk).update(fault=fault[:MAX_FAULT])


def _is_unacted(rule: AlertRule, outcome: AlertOutcome, now: datetime) -> bool:
    """Whether it fires and its actions were not created yet, because the rule was silenced."""
    is_firing = outcome.status.state is AlertState.FIRING and outcome.alert is not None
    return is_firing and not outcome.alert.has_acted and not rule.is_silent(now)  # type: ignore[union-attr]


def _apply(rule: AlertRule, spec: AlertRuleSpec, reading: ScopeReading, now: datetime) -> list[AlertOutcome]:
    """Judge again under the lock of the rule, and write. A rule that somebody changed meanwhile waits for the next."""
    with unit_of_work():
        locked = AlertRule.objects.select_for_update(of=("self",), skip_locked=True).select_related("tenant", "owner")
        found = locked.filter(pk=rule.pk, is_enabled=True, changed_at=rule.changed_at).first()
        if found is None:
            return []
        alerts = list(Alert.objects.filter(rule=found).order_by("pk"))
        judged = list(outcomes(spec.condition, reading, alerts, since=watched_since(found, now)))
        fired, cleared = _write(found, spec, judged, now)
        with acting_owner(found):
            _record(found, spec, judged, now)
        mark_flapping(found, fired, now)
        if found.is_silent(now):
            fired = []
        plan_clearing(found, spec, cleared, now)
        plan_firing(found, spec, fired, now)
    return judged


_OF_A_STATE = ("state", "since", "is_open", "lost_at", "value", "fired_at", "has_acted")


def _write(
    rule: AlertRule, spec: AlertRuleSpec, judged: Sequence[AlertOutcome], now: datetime
) -> tuple[list[Alert], list[Alert]]:
    """Store the states and their changes. Returns the alerts to act on, and those that have cleared after that."""
    fired, cleared, changes = list[Alert](), list[Alert](), list[AlertChange]()
    for one in judged:
        if not one.differs and not _is_unacted(rule, one, now):
            continue
        alert = one.alert or Alert(rule=rule, subject=one.subject, name=one.name, cluster_id=one.cluster_id)
        changes += _changes(rule, spec, one, now)
        was_open = alert.is_open
        alert.state, alert.since, alert.is_open = one.status.state, one.status.since, one.status.is_open
        alert.lost_at, alert.value = one.status.lost_at, one.value
        if alert.is_open and not was_open:
            alert.fired_at = now
        if alert.state == AlertState.FIRING and not alert.has_acted:
            fired.append(alert)
            alert.has_acted = not rule.is_silent(now)
        if was_open and not alert.is_open and alert.has_acted:
            cleared.append(alert)
        if not one.is_normal and alert.pk is None:
            alert.save(force_insert=True)
        elif not one.is_normal:
            alert.save(update_fields=_OF_A_STATE)
        elif alert.pk is not None:
            Alert.objects.filter(pk=alert.pk).delete()
    AlertChange.objects.bulk_create(changes)
    _store_values(judged)
    return fired, cleared


def _store_values(judged: Sequence[AlertOutcome]) -> None:
    """Store the values of alerts whose states stay as they are: some values change all the time."""
    news: list[Alert] = []
    for one in judged:
        if one.has_new_value and one.alert is not None:
            one.alert.value = one.value
            news.append(one.alert)
    if news:
        Alert.objects.bulk_update(news, ["value"], batch_size=_AT_ONCE)


def _changes(rule: AlertRule, spec: AlertRuleSpec, outcome: AlertOutcome, now: datetime) -> list[AlertChange]:
    figures = {"value": outcome.value, "threshold": spec.condition.threshold, "clear": spec.condition.clear}
    place = {"rule": rule, "at": now, "subject": outcome.subject, "name": outcome.name}
    return [AlertChange(**place, old=one.old, new=one.new, reason=one.reason, **figures) for one in outcome.passed]


def _record(rule: AlertRule, spec: AlertRuleSpec, judged: Sequence[AlertOutcome], now: datetime) -> None:
    """Record what began to fire and what has cleared."""
    for outcome in judged:
        for step in outcome.passed:
            facts = _facts(rule, spec, outcome)
            if step.new is AlertState.FIRING and step.old in {AlertState.NORMAL, AlertState.PENDING}:
                record_of(rule, events.AlertFired.model_validate({**facts, "severity": spec.severity}), now)
            elif step.new is AlertState.NORMAL and (step.old in _OPEN or (outcome.alert and outcome.alert.fired_at)):
                record_of(rule, events.AlertCleared.model_validate({**facts, "reason": step.reason}), now)


def _facts(rule: AlertRule, spec: AlertRuleSpec, outcome: AlertOutcome) -> dict[str, object]:
    condition = spec.condition
    return {
        "name": rule.name,
        "about": outcome.name,
        "measure": spec.measure,
        "value": outcome.value,
        "comparison": condition.comparison,
        "threshold": condition.threshold,
        "clear": condition.clear,
    }
