"""Alert rules, their present states, the history of these, and the actions that follow from them."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models

from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import CHANGING, AlertActionKind, AlertSeverity
from hekla.domain.alerts import AlertReason, AlertState, AlertStatus

MAX_SUBJECT, MAX_SUBJECT_NAME, MAX_FAULT, MAX_REASON = 300, 320, 300, 200


def _choices(values: type[AlertState | AlertReason | AlertActionKind | AlertSeverity]) -> list[tuple[str, str]]:
    return [(value.value, value.value) for value in values]


class AlertRule(models.Model):
    """A rule. `spec`: as `domain.alert_rules.AlertRuleSpec`, without `enabled`.

    `tenant`: about which it is; null: about the platform. `owner`: the person who saved it last; it acts with this
    person's rights. `looked_at`: the last evaluation; `watched_since`: since when there was no gap between two.
    `fault`: why it could not be evaluated last; empty: it could. `webhook_secret`: signs its requests; encrypted.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=60)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    spec = models.JSONField()
    severity = models.CharField(max_length=16, choices=_choices(AlertSeverity))
    is_enabled = models.BooleanField(default=True)
    silenced_until = models.DateTimeField(null=True, default=None)
    silence_reason = models.CharField(max_length=MAX_REASON, blank=True, default="")
    webhook_secret = models.BinaryField(default=b"")
    looked_at = models.DateTimeField(null=True, default=None)
    watched_since = models.DateTimeField(null=True, default=None)
    fault = models.CharField(max_length=MAX_FAULT, blank=True, default="")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], nulls_distinct=False, name="one_alert_rule_of_a_name")
        ]
        indexes = [models.Index(fields=["id"], condition=models.Q(is_enabled=True), name="alert_rule_enabled")]

    def __str__(self) -> str:
        return self.name

    def is_silent(self, now: datetime) -> bool:
        """Whether it is silenced: states are recorded, and nobody is notified and nothing is done."""
        return self.silenced_until is not None and self.silenced_until > now


class Alert(models.Model):
    """The state of a rule for one subject; no row: normal.

    `subject`: its kind and key, for example `node:1/n1`; `cluster_id`: of its cluster, if it has one. `episode`: from
    the breach to the return to normal. `has_acted`: whether the actions of this episode were created. `is_flapping`:
    it fired so often in the last hour that the rule changes nothing.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    subject = models.CharField(max_length=MAX_SUBJECT)
    name = models.CharField(max_length=MAX_SUBJECT_NAME)
    cluster_id = models.BigIntegerField(null=True)
    state = models.CharField(max_length=16, choices=_choices(AlertState))
    since = models.DateTimeField()
    is_open = models.BooleanField(default=False)
    lost_at = models.DateTimeField(null=True, default=None)
    value = models.FloatField(null=True)
    episode = models.UUIDField(default=uuid.uuid4)
    fired_at = models.DateTimeField(null=True, default=None)
    has_acted = models.BooleanField(default=False)
    is_flapping = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "subject"], name="one_alert_of_a_subject")]
        indexes = [models.Index(fields=["-fired_at"], condition=models.Q(is_open=True), name="alert_open")]

    def __str__(self) -> str:
        return f"{self.rule_id} {self.state} for {self.subject}"

    @property
    def status(self) -> AlertStatus:
        """For the state machine."""
        return AlertStatus(AlertState(self.state), self.since, self.is_open, self.lost_at)


class AlertChange(models.Model):
    """A change of a state, with the figures of its evaluation. `value`: null without data."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="history", db_index=False)
    at = models.DateTimeField()
    subject = models.CharField(max_length=MAX_SUBJECT)
    name = models.CharField(max_length=MAX_SUBJECT_NAME)
    old = models.CharField(max_length=16, choices=_choices(AlertState))
    new = models.CharField(max_length=16, choices=_choices(AlertState))
    reason = models.CharField(max_length=16, choices=_choices(AlertReason))
    value = models.FloatField(null=True)
    threshold = models.FloatField()
    clear = models.FloatField()

    class Meta:
        indexes = [
            models.Index(fields=["rule", "-id"], name="alert_change_of_rule"),
            models.Index(fields=["at"], name="alert_change_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.rule_id}: {self.old} to {self.new} for {self.subject}"


class AlertAction(models.Model):
    """Something that a rule does, or did, once per episode and `moment`: an outbox.

    `moment`: `fire`, `clear`, or `announce` (people learn of a change that they may forbid).

    `number`: which action of the rule; `spec`: as it was then. `uid` identifies it to receivers of webhooks. `facts`:
    the figures. `has_changed`: whether it changed something, which `clear` may undo. `result`: a code of
    `labels.RESULTS`; `error`: why it failed last.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="actions", db_index=False)
    episode = models.UUIDField()
    number = models.PositiveIntegerField()
    moment = models.CharField(max_length=8)
    kind = models.CharField(max_length=16, choices=_choices(AlertActionKind))
    spec = models.JSONField()
    subject = models.CharField(max_length=MAX_SUBJECT)
    name = models.CharField(max_length=MAX_SUBJECT_NAME)
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    done_at = models.DateTimeField(null=True, default=None)
    abandoned_at = models.DateTimeField(null=True, default=None)
    has_changed = models.BooleanField(default=False)
    result = models.CharField(max_length=24, blank=True, default="")
    error = models.CharField(max_length=MAX_FAULT, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "episode", "number", "moment"], name="one_alert_action_of_a_moment")
        ]
        indexes = [
            models.Index(fields=["rule", "-id"], name="alert_action_of_rule"),
            models.Index(
                fields=["due_at"], condition=models.Q(done_at__isnull=True, abandoned_at__isnull=True),
                name="alert_action_due",
            ),
            models.Index(fields=["created_at"], name="alert_action_by_time"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.kind} of {self.rule_id} for {self.subject}"

    @property
    def is_vetoable(self) -> bool:
        """Whether it changes something, and waits."""
        waits = self.done_at is None and self.abandoned_at is None
        return waits and self.moment == "fire" and self.kind in CHANGING
