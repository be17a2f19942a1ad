"""States, reasons, severities and results of alerts in words, and their figures."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.alerts import measures
from hekla.apps.alerts.models import AlertAction
from hekla.domain.alert_rules import AlertActionKind, AlertAudience, AlertRuleSpec, AlertSeverity
from hekla.domain.alerts import AlertComparison, AlertReason, AlertState

STATES: Mapping[str, Any] = {
    AlertState.NORMAL: gettext_lazy("normal"),
    AlertState.PENDING: gettext_lazy("pending"),
    AlertState.FIRING: gettext_lazy("firing"),
    AlertState.RECOVERING: gettext_lazy("recovering"),
    AlertState.NO_DATA: gettext_lazy("no data"),
}
BADGES: Mapping[str, str] = {
    AlertState.NORMAL: "done",
    AlertState.PENDING: "waiting",
    AlertState.FIRING: "failed",
    AlertState.RECOVERING: "admitted",
    AlertState.NO_DATA: "stopped",
}
"""The colour of a state, as of a badge."""
REASONS: Mapping[str, Any] = {
    AlertReason.BREACH: gettext_lazy("beyond the threshold"),
    AlertReason.DURATION: gettext_lazy("for the whole time"),
    AlertReason.CLEAR: gettext_lazy("back to normal values"),
    AlertReason.NO_DATA: gettext_lazy("no data for two minutes"),
    AlertReason.DATA: gettext_lazy("data again"),
    AlertReason.GONE: gettext_lazy("the subject is gone"),
    AlertReason.RULE: gettext_lazy("the rule was changed"),
}
SEVERITIES: Mapping[str, Any] = {
    AlertSeverity.INFO: gettext_lazy("info"),
    AlertSeverity.WARNING: gettext_lazy("warning"),
    AlertSeverity.CRITICAL: gettext_lazy("critical"),
}
SEVERITY_BADGES: Mapping[str, str] = {
    AlertSeverity.INFO: "neutral",
    AlertSeverity.WARNING: "waiting",
    AlertSeverity.CRITICAL: "failed",
}
ACTIONS: Mapping[str, Any] = {
    AlertActionKind.NOTIFY: gettext_lazy("Notify people"),
    AlertActionKind.WEBHOOK: gettext_lazy("Call a webhook"),
    AlertActionKind.CORDON: gettext_lazy("Cordon the node"),
    AlertActionKind.LABEL_NODE: gettext_lazy("Label the node"),
    AlertActionKind.HOLD_QUEUE: gettext_lazy("Hold a queue"),
    AlertActionKind.STOP_JOB: gettext_lazy("Abort the job"),
}
AUDIENCES: Mapping[str, Any] = {
    AlertAudience.OWNER: gettext_lazy("whoever saved the rule last"),
    AlertAudience.OPERATORS: gettext_lazy("operators and platform admins"),
    AlertAudience.TENANT_ADMINS: gettext_lazy("admins of the tenant"),
}
COMPARISONS: Mapping[str, Any] = {
    AlertComparison.ABOVE: gettext_lazy("above"),
    AlertComparison.BELOW: gettext_lazy("below"),
}
RESULTS: Mapping[str, Any] = {
    "done": gettext_lazy("done"),
    "already": gettext_lazy("it was so already"),
    "nothing": gettext_lazy("nothing to do"),
}


def amount(value: float | None, unit: object = "") -> str:
    """A value with its unit; empty without a value."""
    if value is None:
        return ""
    number = f"{value:.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"  # noqa: PLR2004
    return f"{number} {unit}".strip()


def condition(spec: AlertRuleSpec) -> str:
    """When a rule fires, as a phrase."""
    measure = measures.find(spec.measure)
    words = {
        "measure": measure.label,
        "comparison": COMPARISONS[spec.comparison],
        "threshold": amount(spec.threshold, measure.unit),
    }
    return _("%(measure)s: %(comparison)s %(threshold)s") % words


def result(action: AlertAction) -> str:
    """How an action went."""
    if action.abandoned_at:
        return _("failed")
    return str(RESULTS.get(action.result, "")) if action.done_at else _("due")


def action(document: Mapping[str, Any]) -> str:
    """An action of a rule in words, without what only its editors may read."""
    kind = document["kind"]
    words = str(ACTIONS[kind])
    if kind == AlertActionKind.NOTIFY:
        people = [*document["people"], *(str(AUDIENCES[role]) for role in document["roles"])]
        return _("%(what)s: %(more)s") % {"what": words, "more": _(", ").join(people)}
    if kind == AlertActionKind.HOLD_QUEUE and document["queue"]:
        words = _("%(what)s: %(more)s") % {"what": words, "more": document["queue"]}
    if kind == AlertActionKind.LABEL_NODE:
        words = _("%(what)s: %(more)s") % {"what": words, "more": f"{document['label']}={document['value']}"}
    if document.get("undo"):
        return _("%(what)s (undone when it clears)") % {"what": words}
    return words
