"""The tables of alerts, rules, and the history of a rule."""

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from hekla.apps.alerts import labels, measures, selectors
from hekla.apps.alerts.models import Alert, AlertAction, AlertChange, AlertRule
from hekla.lib import clock
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListFilter, ListTable, named, noted


def state_badge(state: str) -> SafeString:
    """A state with its colour."""
    return html.badge(labels.BADGES[state], str(labels.STATES[state]))


def severity_badge(severity: str) -> SafeString:
    """A severity with its colour."""
    return html.badge(labels.SEVERITY_BADGES[severity], str(labels.SEVERITIES[severity]))


def whose(rule: AlertRule) -> str:
    """The tenant of a rule, or the platform."""
    return rule.tenant.name if rule.tenant else str(gettext_lazy("platform"))


def _amount(alert: Alert | AlertChange) -> str:
    return labels.amount(alert.value, _unit(alert.rule))


def _state(alert: Alert) -> SafeString:
    """The state, and whether the alert flaps."""
    flaps = html.badge("waiting", str(gettext_lazy("flapping"))) if alert.is_flapping and alert.is_open else ""
    return SafeString(f"{state_badge(alert.state)} {flaps}")


def _unit(rule: AlertRule) -> object:
    return measures.find(rule.spec["measure"]).unit


class AlertsTable(ListTable):
    """What fires now, and what is near it."""

    label = gettext_lazy("Alerts now")
    ids = "alert-{0.pk}"

    subject = ListColumn(gettext_lazy("About"), cell=lambda alert: noted(alert.name, whose(alert.rule)))
    rule = ListColumn(gettext_lazy("Rule"), cell=lambda alert: named("alerts:detail", alert.rule.uid, alert.rule.name))
    severity = ListColumn(gettext_lazy("Severity"), cell=lambda alert: severity_badge(alert.rule.severity))
    state = ListColumn(gettext_lazy("State"), cell=_state)
    value = ListColumn(gettext_lazy("Value"), cell=_amount, number=True)
    since = ListColumn(gettext_lazy("Since"), cell=lambda alert: html.moment(alert.since))


def _rule_state(rule: AlertRule) -> SafeString:
    if not rule.is_enabled:
        return html.badge("stopped", str(gettext_lazy("off")))
    if rule.fault:
        return html.badge("failed", str(gettext_lazy("cannot be evaluated")), rule.fault)
    if rule.is_silent(clock.now()):
        return html.badge("stopped", str(gettext_lazy("silenced")), rule.silence_reason)
    return html.badge("running", str(gettext_lazy("on")))


class AlertRulesTable(ListTable):
    """The rules that the reader may see."""

    label = gettext_lazy("Rules")
    ids = "rule-{0.uid}"

    name = ListColumn(
        gettext_lazy("Rule"), sort="name", cell=lambda rule: named("alerts:detail", rule.uid, rule.name, whose(rule))
    )
    condition = ListColumn(gettext_lazy("Fires if"), cell=lambda rule: labels.condition(selectors.spec_of(rule)))
    severity = ListColumn(gettext_lazy("Severity"), cell=lambda rule: severity_badge(rule.severity))
    state = ListColumn(gettext_lazy("State"), cell=_rule_state)
    owner = ListColumn(gettext_lazy("Saved by"), sort="owner__username", cell=lambda rule: rule.owner.username)


class AlertRulesFilter(ListFilter):
    """Filters by name and tenant."""

    search = ("name", "tenant__name", "owner__username")
    hint = gettext_lazy("Name, tenant or person")


class RuleAlertsTable(ListTable):
    """The states of one rule that are not normal."""

    label = gettext_lazy("States")
    ids = "alert-{0.pk}"

    subject = ListColumn(gettext_lazy("About"), cell=lambda alert: alert.name)
    state = ListColumn(gettext_lazy("State"), cell=_state)
    value = ListColumn(gettext_lazy("Value"), cell=_amount, number=True)
    since = ListColumn(gettext_lazy("Since"), cell=lambda alert: html.moment(alert.since))


def _step(change: AlertChange) -> SafeString:
    return SafeString(f"{state_badge(change.old)} → {state_badge(change.new)}")


class AlertHistoryTable(ListTable):
    """The changes of states of a rule, newest first."""

    label = gettext_lazy("History")
    heading = "about"
    ids = "change-{0.pk}"
    size = 25

    at = ListColumn(gettext_lazy("Time"), cell=lambda change: html.moment(change.at, exact=True))
    about = ListColumn(gettext_lazy("About"), cell=lambda change: change.name)
    step = ListColumn(gettext_lazy("State"), cell=_step)
    value = ListColumn(gettext_lazy("Value"), cell=_amount, number=True)
    threshold = ListColumn(
        gettext_lazy("Threshold"), cell=lambda change: labels.amount(change.threshold, _unit(change.rule)), number=True
    )
    reason = ListColumn(gettext_lazy("Reason"), cell=lambda change: labels.REASONS[change.reason])


def _result(action: AlertAction) -> SafeString:
    badge = "failed" if action.abandoned_at else "done" if action.done_at else "waiting"
    return html.badge(badge, labels.result(action), action.error)


class AlertActionsTable(ListTable):
    """What a rule did, newest first."""

    label = gettext_lazy("Actions")
    heading = "about"
    ids = "action-{0.pk}"
    size = 25

    at = ListColumn(gettext_lazy("Time"), cell=lambda action: html.moment(action.created_at, exact=True))
    about = ListColumn(gettext_lazy("About"), cell=lambda action: action.name)
    kind = ListColumn(gettext_lazy("Action"), template="alerts/_action_kind.html")
    result = ListColumn(gettext_lazy("Result"), template="alerts/_action_result.html")
