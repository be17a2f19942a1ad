"""The spec of an alert rule: what it measures, when it fires, and what it does then."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from hekla.domain.alerts import AlertComparison, AlertCondition
from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import StrictInteger
from hekla.domain.model_errors import explain
from hekla.domain.node_labels import SetLabelKey
from hekla.domain.placement import LabelValue
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields

MAX_NAME, MAX_URL, MAX_ACTIONS, MAX_PEOPLE = 60, 500, 6, 20
LONGEST_SECONDS = 7 * 24 * 3600
LONGEST_WINDOW_MINUTES = 24 * 60
LONGEST_VETO_MINUTES = 24 * 60
MOST_AN_HOUR = 100
_LARGEST = 1e12


class AlertSeverity(StrEnum):
    """How urgent an alert is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlertAudience(StrEnum):
    """People by their role: who saved the rule last, operators and platform admins, or admins of the rule's tenant."""

    OWNER = "owner"
    OPERATORS = "operators"
    TENANT_ADMINS = "tenant_admins"


class AlertActionKind(StrEnum):
    """What a rule does when it fires."""

    NOTIFY = "notify"
    WEBHOOK = "webhook"
    CORDON = "cordon"
    LABEL_NODE = "label_node"
    HOLD_QUEUE = "hold_queue"
    STOP_JOB = "stop_job"


CHANGING = frozenset(AlertActionKind) - {AlertActionKind.NOTIFY, AlertActionKind.WEBHOOK}
"""They change what runs, so they have a limit per hour."""

_Text = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^\x00-\x1f]*$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NotifyAction(_Model):
    """Notify people, in the console and by mail."""

    kind: Literal[AlertActionKind.NOTIFY] = AlertActionKind.NOTIFY
    people: Annotated[
        tuple[Annotated[_Text, Field(min_length=1, max_length=150)], ...], Field(max_length=MAX_PEOPLE)
    ] = ()
    roles: Annotated[tuple[AlertAudience, ...], Field(max_length=len(AlertAudience))] = ()


class WebhookAction(_Model):
    """Post signed JSON to a URL."""

    kind: Literal[AlertActionKind.WEBHOOK] = AlertActionKind.WEBHOOK
    url: Annotated[_Text, Field(min_length=1, max_length=MAX_URL)]


class CordonAction(_Model):
    """Cordon the node. `undo`: uncordon it when the alert clears."""

    kind: Literal[AlertActionKind.CORDON] = AlertActionKind.CORDON
    undo: Annotated[bool, Field(strict=True)] = False


class LabelNodeAction(_Model):
    """Set a label of the node, which the scheduler reads like those of the cluster. `undo`: remove it at the end."""

    kind: Literal[AlertActionKind.LABEL_NODE] = AlertActionKind.LABEL_NODE
    label: SetLabelKey
    value: LabelValue = ""
    undo: Annotated[bool, Field(strict=True)] = False


class HoldQueueAction(_Model):
    """Stop admitting jobs of a queue; empty: of the queue that the alert is about. `undo`: open it again."""

    kind: Literal[AlertActionKind.HOLD_QUEUE] = AlertActionKind.HOLD_QUEUE
    queue: Annotated[_Text, Field(max_length=63)] = ""
    undo: Annotated[bool, Field(strict=True)] = False


class StopJobAction(_Model):
    """Abort the job. Its owner can resume it."""

    kind: Literal[AlertActionKind.STOP_JOB] = AlertActionKind.STOP_JOB


AlertActionSpec = Annotated[
    NotifyAction | WebhookAction | CordonAction | LabelNodeAction | HoldQueueAction | StopJobAction,
    Field(discriminator="kind"),
]


class AlertRuleSpec(_Model):
    """An alert rule. `cluster`, `queue`, `node_label` (`key` or `key=value`) narrow its subjects; empty: all of them.

    `clear`: the threshold to clear; null: the same. `window_minutes`: the time that a measure counts in, if it has one.
    `actions`: at most one of each kind. `actions_per_hour`: the most nodes, queues and jobs that it changes in an hour.
    `veto_minutes`: how long such a change is announced before it is made, so that a person can forbid it; 0: not.
    """

    name: Annotated[_Text, Field(min_length=1, max_length=MAX_NAME)]
    measure: Annotated[str, Field(max_length=40)]
    cluster: Annotated[_Text, Field(max_length=40)] = ""
    queue: Annotated[_Text, Field(max_length=63)] = ""
    node_label: Annotated[_Text, Field(max_length=380)] = ""
    comparison: AlertComparison = AlertComparison.ABOVE
    threshold: Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]
    clear: Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)] | None = None
    for_seconds: Annotated[StrictInteger, Field(ge=0, le=LONGEST_SECONDS)] = 0
    recovery_seconds: Annotated[StrictInteger, Field(ge=0, le=LONGEST_SECONDS)] = 0
    window_minutes: Annotated[StrictInteger, Field(ge=1, le=LONGEST_WINDOW_MINUTES)] = 10
    severity: AlertSeverity = AlertSeverity.WARNING
    enabled: Annotated[bool, Field(strict=True)] = True
    actions: Annotated[tuple[AlertActionSpec, ...], Field(max_length=MAX_ACTIONS)] = ()
    actions_per_hour: Annotated[StrictInteger, Field(ge=1, le=MOST_AN_HOUR)] = 3
    veto_minutes: Annotated[StrictInteger, Field(ge=0, le=LONGEST_VETO_MINUTES)] = 0

    @model_validator(mode="after")
    def _clears_on_the_safe_side(self) -> "AlertRuleSpec":
        if self.clear is not None:
            is_above = self.comparison is AlertComparison.ABOVE
            if (self.clear > self.threshold) if is_above else (self.clear < self.threshold):
                most = translate("The alert would clear while it fires: choose at most the threshold.")
                least = translate("The alert would clear while it fires: choose at least the threshold.")
                raise InconsistentFields([Problem("clear", most if is_above else least)])
        return self

    @model_validator(mode="after")
    def _acts_once(self) -> "AlertRuleSpec":
        kinds = [action.kind for action in self.actions]
        for number, kind in enumerate(kinds):
            if kind in kinds[:number]:
                message = translate("The rule has two actions of the kind {kind}.", kind=kind)
                raise InconsistentFields([Problem(f"actions.{number}.kind", message)])
        return self

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "AlertRuleSpec":
        """The rule that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise Invalid(explain(error, cls)) from error

    def document(self) -> dict[str, Any]:
        """As JSON-like data; `parse` reads it back."""
        return self.model_dump(mode="json")

    @property
    def condition(self) -> AlertCondition:
        """When it fires and clears."""
        return AlertCondition(
            self.comparison,
            self.threshold,
            self.threshold if self.clear is None else self.clear,
            timedelta(seconds=self.for_seconds),
            timedelta(seconds=self.recovery_seconds),
        )

    @property
    def window(self) -> timedelta:
        return timedelta(minutes=self.window_minutes)

    @property
    def scope(self) -> tuple[object, ...]:
        """What decides the subjects and their values: rules with equal scopes are read once."""
        return self.measure, self.cluster, self.queue, self.node_label, self.window_minutes
