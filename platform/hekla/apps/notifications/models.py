"""Notification settings, notifications, and their deliveries."""

from collections.abc import Mapping
from uuid import UUID

from django.conf import settings
from django.db import models
from django.urls import reverse

from hekla.apps.notifications.choices import DEFAULT_CHANNELS, DEFAULT_MOMENTS, LONG_WAIT_MINUTES, Moment


def _moments() -> list[str]:
    return [str(moment) for moment in DEFAULT_MOMENTS]


def _default_channels() -> list[str]:
    return [str(channel) for channel in DEFAULT_CHANNELS]


class _Choice(models.Model):
    """The moments to notify of, the channels, and the wait that counts as long, in minutes."""

    moments = models.JSONField(default=_moments)
    channels = models.JSONField(default=_default_channels)
    long_wait_minutes = models.PositiveIntegerField(default=LONG_WAIT_MINUTES)

    class Meta:
        abstract = True


class Preference(_Choice):
    """A person's defaults for all their jobs, and their addresses.

    `webhook_secret`: signs the requests to the webhook; encrypted. `language`: of mails and webhooks.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notification_choice")
    mail = models.EmailField(blank=True)
    is_digest = models.BooleanField(default=False)
    webhook_url = models.CharField(max_length=500, blank=True)
    webhook_secret = models.BinaryField(default=b"")
    language = models.CharField(max_length=16, blank=True)

    def __str__(self) -> str:
        return f"choice of {self.user_id}"


class JobChoice(_Choice):
    """A person's choice for one job, their own or another that they may see. No moments: no notifications."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    job_uid = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "job_uid"], name="one_choice_of_a_job")]
        indexes = [models.Index(fields=["job_uid"], name="choice_by_job")]

    def __str__(self) -> str:
        return f"choice of {self.user_id} for {self.job_uid}"


_PLACES: Mapping[str, tuple[str, ...]] = {
    Moment.ALERT: ("alerts:detail", "rule_uid"),
    Moment.REPORT: ("reports:run", "report_uid", "run"),
    Moment.INVITED: ("sharing:mine",),
    Moment.REPORT_STOPPED: ("reports:detail", "report_uid"),
    Moment.REMINDED: ("jobs:detail", "job_uid"),
}
"""By moment, a view and the facts with the uids in its address."""


class Notification(models.Model):
    """A notification of a person. `key` identifies its occasion, so that it is created once. `facts`: for its sentence.

    It is about a job, about a batch (its `facts` have `batch`, a uid), or about the person; then `job_uid` and
    `tenant_id` are null.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications")
    key = models.CharField(max_length=160)
    moment = models.CharField(max_length=16)
    at = models.DateTimeField()
    job_uid = models.UUIDField(null=True)
    job_name = models.CharField(max_length=53, blank=True)
    tenant_id = models.BigIntegerField(null=True)
    facts = models.JSONField(default=dict)
    in_page = models.BooleanField(default=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="told_once")]
        indexes = [
            models.Index(fields=["user", "-id"], name="notification_by_user"),
            models.Index(
                fields=["user"], condition=models.Q(in_page=True, read_at__isnull=True), name="notification_unread"
            ),
            models.Index(fields=["at"], name="notification_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.key} to {self.user_id}"

    @property
    def page(self) -> str:
        """The path of what it is about: a rule, report, batch, session, job, invitations, or the notifications."""
        if place := _PLACES.get(self.moment):
            view, *facts = place
            return reverse(view, args=[UUID(self.facts[fact]) for fact in facts])
        if session := self.facts.get("session"):
            return reverse("workbench:activity", args=[UUID(session)])
        if self.moment == Moment.IDLE:
            return reverse("idleness:job", args=[UUID(self.facts["job_uid"])])
        if batch := self.facts.get("batch"):
            return reverse("batches:detail", args=[batch])
        return reverse("jobs:detail", args=[self.job_uid]) if self.job_uid else reverse("notifications:list")


class Delivery(models.Model):
    """The delivery of a notification by mail or webhook. It is retried until it is sent or abandoned.

    `mail`: the address of a mail, if it is not the person's present one.
    """

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=16)
    due_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    abandoned_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)
    mail = models.EmailField(blank=True, default="", db_default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["notification", "channel"], name="sent_once_each_way")]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(sent_at__isnull=True, abandoned_at__isnull=True),
                name="delivery_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.notification_id} by {self.channel}"


class NotificationCursor(models.Model):
    """The one row with the number of the last event of the log that was processed."""

    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"up to event {self.number}"
