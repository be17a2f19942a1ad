"""The form of an alert rule, and of its silence."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.alerts import checks, labels, measures
from hekla.apps.alerts.models import MAX_REASON
from hekla.apps.alerts.services.rules import LONGEST_SILENCE
from hekla.apps.clusters import selectors as clusters
from hekla.apps.forms import attach
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import (
    LONGEST_VETO_MINUTES,
    LONGEST_WINDOW_MINUTES,
    MAX_NAME,
    MAX_URL,
    MOST_AN_HOUR,
    AlertActionKind,
    AlertAudience,
    AlertRuleSpec,
)
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.pages.frame.durations import DurationField
from hekla.pages.frame.edit_form import ValuesEditForm

_OWN_QUEUE = "="
"""The choice to hold the queue that the alert is about. No queue has such a name."""
_SAME = ("name", "measure", "cluster", "queue", "node_label", "comparison", "threshold", "clear", "severity", "enabled")
_NUMBERS = ("for_seconds", "recovery_seconds", "window_minutes", "actions_per_hour", "veto_minutes")


class AlertRuleForm(forms.Form):
    """An alert rule. Its fields depend on what it is about, and on what the person may do."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME, help_text=_("For example: node down."))
    severity = forms.ChoiceField(label=_("Severity"), choices=list(labels.SEVERITIES.items()), initial="warning")
    measure = forms.ChoiceField(label=_("Measure"))
    cluster = forms.ChoiceField(
        label=_("Cluster"), required=False, help_text=_("Simulated clusters count only if you choose one.")
    )
    queue = forms.ChoiceField(label=_("Queue"), required=False)
    node_label = forms.CharField(
        label=_("Nodes with the label"), required=False, max_length=380, help_text=_("A key, or key=value.")
    )
    comparison = forms.ChoiceField(label=_("Fires if the value is"), choices=list(labels.COMPARISONS.items()))
    threshold = forms.FloatField(label=_("Threshold"), initial=0)
    clear = forms.FloatField(
        label=_("Threshold to clear"),
        required=False,
        help_text=_("A value on its safe side, or equal to it, ends the alert. Leave empty: the same threshold."),
    )
    for_seconds = DurationField(label=_("For at least"), required=False, help_text=_("Leave empty: it fires at once."))
    recovery_seconds = DurationField(
        label=_("Clear for at least"), required=False, help_text=_("Leave empty: it clears at once.")
    )
    window_minutes = forms.IntegerField(
        label=_("Window (minutes)"),
        min_value=1,
        max_value=LONGEST_WINDOW_MINUTES,
        initial=10,
        help_text=_("For measures that count in a window."),
    )
    notify_roles = forms.MultipleChoiceField(
        label=_("Notify"), required=False, widget=forms.CheckboxSelectMultiple, choices=()
    )
    notify_people = forms.CharField(
        label=_("Notify people"), required=False, max_length=2000, help_text=_("User names, with commas between them.")
    )
    webhook_url = forms.CharField(
        label=_("Webhook URL"), required=False, max_length=MAX_URL, help_text=_("Gets signed JSON by POST.")
    )
    cordon = forms.BooleanField(label=_("Cordon the node"), required=False)
    cordon_undo = forms.BooleanField(label=_("Uncordon it when the alert clears"), required=False)
    node_set_label = forms.CharField(
        label=_("Label the node"),
        required=False,
        max_length=380,
        help_text=_("A key, or key=value. Jobs can select or avoid nodes by it."),
    )
    label_undo = forms.BooleanField(label=_("Remove it when the alert clears"), required=False)
    hold_queue = forms.ChoiceField(
        label=_("Hold a queue"),
        required=False,
        help_text=_("A queue on hold admits no jobs. Its running jobs continue."),
    )
    hold_undo = forms.BooleanField(label=_("Open it when the alert clears"), required=False)
    stop_job = forms.BooleanField(label=_("Abort the job"), required=False, help_text=_("Its owner can resume it."))
    actions_per_hour = forms.IntegerField(
        label=_("Changes per hour"),
        min_value=1,
        max_value=MOST_AN_HOUR,
        initial=3,
        help_text=_("The most nodes, queues and jobs that this rule changes in an hour."),
    )
    veto_minutes = forms.IntegerField(
        label=_("Veto time (minutes)"),
        required=False,
        min_value=0,
        max_value=LONGEST_VETO_MINUTES,
        initial=0,
        help_text=_("Changes are announced so long before they are made, and can be vetoed. 0: made at once."),
    )
    enabled = forms.BooleanField(label=_("On"), required=False, initial=True)

    def __init__(self, *args: Any, tenant: Tenant | None, user: User, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        everywhere = [("", _("all"))]
        self._choose("measure", [(one.name, one.label) for one in measures.offered(for_tenant=tenant is not None)])
        self._choose("cluster", everywhere + [(one.name, one.name) for one in clusters.all_clusters()])
        visible = [(one.name, one.name) for one in queues.visible_to(user)]
        self._choose("queue", everywhere + visible)
        unfit = AlertAudience.OPERATORS if tenant else AlertAudience.TENANT_ADMINS
        self._choose("notify_roles", [(role, words) for role, words in labels.AUDIENCES.items() if role != unfit])
        self._choose("hold_queue", [("", _("none")), (_OWN_QUEUE, _("the queue that the alert is about")), *visible])
        self._leave_out(tenant, user)

    def _leave_out(self, tenant: Tenant | None, user: User) -> None:
        """Remove what the person may not do, or what rules about a tenant cannot do."""
        removed: list[str] = []
        if tenant is not None:
            removed += ["node_label"]
        if tenant is not None or not accounts.may(user, Permission.MANAGE_CLUSTERS):
            removed += ["cordon", "cordon_undo", "node_set_label", "label_undo"]
        if tenant is not None or not accounts.may(user, Permission.MANAGE_QUEUES):
            removed += ["hold_queue", "hold_undo"]
        if not checks.may_stop(user, tenant):
            removed += ["stop_job"]
        for name in removed:
            del self.fields[name]

    def _choose(self, name: str, choices: list[tuple[Any, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (declared above)
        field.choices = choices

    def spec(self) -> AlertRuleSpec:
        """The submitted rule. Raises Invalid."""
        values = self.cleaned_data
        document = {name: values[name] for name in _SAME if name in values}
        document |= {name: values[name] or 0 for name in _NUMBERS}
        return AlertRuleSpec.parse({**document, "actions": self.actions()})

    def actions(self) -> list[dict[str, Any]]:
        """The submitted actions as documents, in the order of the spec."""
        values, found = self.cleaned_data, list[dict[str, Any]]()
        people = [name for part in values["notify_people"].split(",") if (name := part.strip())]
        if people or values["notify_roles"]:
            found.append({"kind": AlertActionKind.NOTIFY, "people": people, "roles": values["notify_roles"]})
        if values["webhook_url"]:
            found.append({"kind": AlertActionKind.WEBHOOK, "url": values["webhook_url"]})
        if values.get("cordon"):
            found.append({"kind": AlertActionKind.CORDON, "undo": values["cordon_undo"]})
        if label := values.get("node_set_label"):
            key, _equals, value = label.partition("=")
            kind = AlertActionKind.LABEL_NODE
            found.append({"kind": kind, "label": key.strip(), "value": value.strip(), "undo": values["label_undo"]})
        if queue := values.get("hold_queue"):
            named = "" if queue == _OWN_QUEUE else queue
            found.append({"kind": AlertActionKind.HOLD_QUEUE, "queue": named, "undo": values["hold_undo"]})
        if values.get("stop_job"):
            found.append({"kind": AlertActionKind.STOP_JOB})
        return found


class AlertRuleChangeForm(ValuesEditForm, AlertRuleForm):
    """An existing rule."""


class SilenceForm(forms.Form):
    """For how long a rule is silent, and why."""

    hours = forms.IntegerField(
        label=_("Silence for (hours)"), min_value=1, max_value=LONGEST_SILENCE.days * 24 - 1, initial=4
    )
    reason = forms.CharField(
        label=_("Because"), max_length=MAX_REASON, help_text=_("For example: planned maintenance.")
    )


def first_values(spec: AlertRuleSpec) -> dict[str, Any]:
    """Initial values of the form for an existing rule."""
    document = spec.document()
    values = {name: document[name] for name in (*_SAME, *_NUMBERS)}
    actions = {action["kind"]: action for action in document["actions"]}
    notify = actions.get(AlertActionKind.NOTIFY, {"people": [], "roles": []})
    hold, label = actions.get(AlertActionKind.HOLD_QUEUE), actions.get(AlertActionKind.LABEL_NODE)
    return {
        **values,
        "for_seconds": values["for_seconds"] or None,
        "recovery_seconds": values["recovery_seconds"] or None,
        "notify_people": ", ".join(notify["people"]),
        "notify_roles": notify["roles"],
        "webhook_url": actions.get(AlertActionKind.WEBHOOK, {"url": ""})["url"],
        "cordon": AlertActionKind.CORDON in actions,
        "cordon_undo": actions.get(AlertActionKind.CORDON, {"undo": False})["undo"],
        "node_set_label": f"{label['label']}={label['value']}".removesuffix("=") if label else "",
        "label_undo": bool(label and label["undo"]),
        "hold_queue": (hold["queue"] or _OWN_QUEUE) if hold else "",
        "hold_undo": bool(hold and hold["undo"]),
        "stop_job": AlertActionKind.STOP_JOB in actions,
    }


_FIELD_OF = {
    AlertActionKind.NOTIFY: "notify_people",
    AlertActionKind.WEBHOOK: "webhook_url",
    AlertActionKind.CORDON: "cordon",
    AlertActionKind.LABEL_NODE: "node_set_label",
    AlertActionKind.HOLD_QUEUE: "hold_queue",
    AlertActionKind.STOP_JOB: "stop_job",
}


def attach_problems(form: AlertRuleForm, error: HeklaError) -> None:
    """Show an error at the field that it is about: those of actions at the field of their kind."""
    if isinstance(error, Invalid):
        kinds = [action["kind"] for action in form.actions()]
        error = Invalid([_in_form(problem, kinds) for problem in error.problems])
    attach(form, error)


def _in_form(problem: Problem, kinds: list[AlertActionKind]) -> Problem:
    first, _dot, rest = problem.path.partition(".")
    number = rest.partition(".")[0]
    if first != "actions" or not number.isdecimal() or int(number) >= len(kinds):
        return problem
    return Problem(_FIELD_OF[kinds[int(number)]], problem.message)
