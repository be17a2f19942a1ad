"""Creates the actions of alerts as rows, in the transaction that changes their states.

People and webhooks get one message for all alerts of one evaluation, so a rack that fails is one mail. What changes
nodes, queues and jobs has a row for each subject, and a limit per hour. Messages have one too: a value that flaps must
not flood people, nor fill the outbox.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from hekla.apps.alerts import wake
from hekla.apps.alerts.models import Alert, AlertAction, AlertChange, AlertRule
from hekla.domain.alert_rules import CHANGING, AlertActionSpec, AlertAudience, AlertRuleSpec, NotifyAction
from hekla.domain.alerts import AlertState

FIRE, CLEAR, ANNOUNCE = "fire", "clear", "announce"
FLAPS = 4
"""An alert that fires so often within an hour flaps: the rule still notifies, and changes nothing."""
_MOST_NAMED = 20
_HOUR = timedelta(hours=1)
MOST_MESSAGES, MOST_OF_SUBJECT = 60, 12
"""Of one kind in an hour, for each rule, and for each first subject: about alerts that fire, and about their ends."""


def plan_firing(rule: AlertRule, spec: AlertRuleSpec, fired: Sequence[Alert], now: datetime) -> None:
    """Create the actions of alerts that fire."""
    if not fired:
        return
    recent = AlertAction.objects.filter(rule=rule, kind__in=CHANGING, moment=FIRE, created_at__gt=now - _HOUR)
    left = spec.actions_per_hour - recent.filter(abandoned_at=None).count()
    rows: list[AlertAction] = []
    for number, action in enumerate(spec.actions):
        if action.kind not in CHANGING:
            rows.append(_message(rule, spec, number, action, FIRE, fired, now))
            continue
        announced: list[Alert] = []
        for alert in fired:
            row = _row(rule, spec, number, action, FIRE, [alert], now)
            if alert.is_flapping:
                row.abandoned_at, row.error = now, _("It fired %d times within an hour.") % FLAPS
            elif left <= 0:
                row.abandoned_at, row.error = now, _("The limit of actions per hour is reached.")
            elif spec.veto_minutes:
                row.due_at = now + timedelta(minutes=spec.veto_minutes)
                announced.append(alert)
            left -= not alert.is_flapping
            rows.append(row)
        if announced:
            rows.append(_announcement(rule, spec, number, action, announced, now))
    _store(rows, now)


def mark_flapping(rule: AlertRule, fired: Sequence[Alert], now: datetime) -> None:
    """Mark those of these alerts that fired too often in the last hour, this time included."""
    started = Q(old__in=[AlertState.NORMAL, AlertState.PENDING], new=AlertState.FIRING)
    changes = AlertChange.objects.filter(started, rule=rule, subject__in=[one.subject for one in fired])
    recent = changes.filter(at__gt=now - _HOUR).order_by().values_list("subject").annotate(n=Count("pk"))
    often = {subject for subject, count in recent if count >= FLAPS} if fired else set()
    for alert in fired:
        alert.is_flapping = alert.subject in often
    Alert.objects.filter(rule=rule, subject__in=often).update(is_flapping=True)


def _announcement(
    rule: AlertRule,
    spec: AlertRuleSpec,
    number: int,
    action: AlertActionSpec,
    alerts: Sequence[Alert],
    now: datetime,
) -> AlertAction:
    """Tells those who may forbid it what the rule is about to do."""
    of_place = AlertAudience.TENANT_ADMINS if rule.tenant_id else AlertAudience.OPERATORS
    message = NotifyAction(roles=(AlertAudience.OWNER, of_place))
    row = _row(rule, spec, number, message, ANNOUNCE, alerts, now)
    due = now + timedelta(minutes=spec.veto_minutes)
    row.facts |= {"action": action.kind, "due_at": due.isoformat()}
    return row


def plan_undoing(rule: AlertRule, spec: AlertRuleSpec, ended: Sequence[Alert], now: datetime) -> None:
    """Create what undoes the changes of alerts that the rule no longer watches. Nobody is notified."""
    undone = [(number, action) for number, action in enumerate(spec.actions) if getattr(action, "undo", False)]
    rows = [_row(rule, spec, number, action, CLEAR, [alert], now) for number, action in undone for alert in ended]
    _store(rows, now)


def plan_clearing(rule: AlertRule, spec: AlertRuleSpec, cleared: Sequence[Alert], now: datetime) -> None:
    """Create the actions of alerts that have cleared: messages, and what is to be undone."""
    if not cleared:
        return
    rows: list[AlertAction] = []
    for number, action in enumerate(spec.actions):
        if action.kind not in CHANGING:
            rows.append(_message(rule, spec, number, action, CLEAR, cleared, now))
        elif getattr(action, "undo", False):
            rows += [_row(rule, spec, number, action, CLEAR, [alert], now) for alert in cleared]
    _store(rows, now)


def _message(
    rule: AlertRule,
    spec: AlertRuleSpec,
    number: int,
    action: AlertActionSpec,
    moment: str,
    alerts: Sequence[Alert],
    now: datetime,
) -> AlertAction:
    """One row for all these alerts. It is abandoned above the limit."""
    row = _row(rule, spec, number, action, moment, alerts, now)
    same = AlertAction.objects.filter(rule=rule, kind=action.kind, moment=moment, created_at__gt=now - _HOUR)
    recent = list(same.filter(Q(abandoned_at=None) | Q(attempts__gt=0)).values_list("subject", flat=True))
    if len(recent) >= MOST_MESSAGES or recent.count(row.subject) >= MOST_OF_SUBJECT:
        row.abandoned_at, row.error = now, _("The limit of messages per hour is reached.")
    return row


def _row(
    rule: AlertRule,
    spec: AlertRuleSpec,
    number: int,
    action: AlertActionSpec,
    moment: str,
    alerts: Sequence[Alert],
    now: datetime,
) -> AlertAction:
    first = alerts[0]
    return AlertAction(
        rule=rule,
        episode=first.episode,
        number=number,
        moment=moment,
        kind=action.kind,
        spec=action.model_dump(mode="json"),
        subject=first.subject,
        name=first.name,
        facts=_facts(spec, alerts),
        created_at=now,
        due_at=now,
    )


def _facts(spec: AlertRuleSpec, alerts: Sequence[Alert]) -> dict[str, Any]:
    condition = spec.condition
    return {
        "measure": spec.measure,
        "comparison": condition.comparison,
        "threshold": condition.threshold,
        "clear": condition.clear,
        "severity": spec.severity,
        "count": len(alerts),
        "is_flapping": any(one.is_flapping for one in alerts),
        "subjects": [
            {"subject": one.subject, "name": one.name, "value": one.value, "since": one.since.isoformat()}
            for one in alerts[:_MOST_NAMED]
        ],
    }


def _store(rows: Sequence[AlertAction], now: datetime) -> None:
    """An action that exists already is not created again."""
    AlertAction.objects.bulk_create(rows, ignore_conflicts=True)
    if rows:
        wake.act_at(now, now=now)
