"""Events of alert rules. The subject is the rule. Its owner is the actor of what it does, with its name as session."""

from typing import Annotated, Literal

from pydantic import Field

from hekla.domain.events.base import Changes, Event, Message, Name


class AlertRuleCreated(Event):
    name: Name


class AlertRuleChanged(Event):
    name: Name
    changes: Changes


class AlertRuleDeleted(Event):
    name: Name


class AlertRuleSilenced(Event):
    """The rule does nothing until then; empty: the silence was ended."""

    name: Name
    until: Name = ""
    reason: Message = ""


class AlertRuleSecretRenewed(Event):
    name: Name


class _AlertEvent(Event):
    """`about`: the subject, for people."""

    name: Name
    about: Annotated[str, Field(max_length=320)]


class _AlertFigures(_AlertEvent):
    """The figures of the evaluation that changed a state. `value`: None without data."""

    measure: Name
    value: float | None = None
    comparison: Name
    threshold: float
    clear: float


class AlertFired(_AlertFigures):
    """A value was beyond the threshold for the time that the rule requires."""

    severity: Name


class AlertCleared(_AlertFigures):
    """`reason`: of `domain.alerts.AlertReason`."""

    reason: Name


class AlertActed(_AlertEvent):
    """The rule did something, or could not (`error`). `action`: of `domain.alert_rules.AlertActionKind`."""

    action: Name
    moment: Literal["fire", "clear", "announce"] = "fire"
    error: Message = ""


class AlertActionVetoed(_AlertEvent):
    """The actor forbade a change that the rule had announced. `action`: of `domain.alert_rules.AlertActionKind`."""

    action: Name
