"""Reports, the occasions at which they were sent, and the copy of each recipient.

What was sent is not stored: a copy is rendered when its mail is sent, with what its reader may see then.
"""

import uuid

from django.conf import settings
from django.db import models

from hekla.domain.reports import MAX_NAME, ReportObstacle, ReportSpan

MAX_ERROR = 300
_OBSTACLES = [(value.value, value.value) for value in ReportObstacle]


class Report(models.Model):
    """A report. `spec`: as `domain.reports.ReportSpec`, without `recipients` and `paused`.

    `owner`: who saved it last; it is sent only while this person may see what it is about. `stopped`: why it is not
    sent any more; empty: no reason. `next_at`: when it is due; null: never.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=MAX_NAME)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    spec = models.JSONField()
    is_paused = models.BooleanField(default=False)
    stopped = models.CharField(max_length=16, blank=True, default="", choices=_OBSTACLES)
    next_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_report_of_a_name")]
        indexes = [models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="report_due")]

    def __str__(self) -> str:
        return self.name


class ReportRecipient(models.Model):
    """A person who gets a report."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["report", "user"], name="one_copy_of_a_report")]

    def __str__(self) -> str:
        return f"{self.report_id} to {self.user_id}"


class ReportRun(models.Model):
    """An occasion at which a report was sent. It covers the time from `begin` until `end`; `before`: see `ReportSpan`.

    `due_at`: by the schedule, or the minute in which a person sent it.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="runs", db_index=False)
    due_at = models.DateTimeField()
    by_hand = models.BooleanField(default=False)
    begin = models.DateTimeField()
    end = models.DateTimeField()
    before = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["report", "due_at", "by_hand"], name="one_run_of_a_report")]

    def __str__(self) -> str:
        return f"{self.report_id} of {self.due_at}"

    @property
    def span(self) -> ReportSpan:
        """The time that it covers."""
        return ReportSpan(self.begin, self.end, self.before)


class ReportCopy(models.Model):
    """What became of a run for one recipient.

    `obstacle`: why they were left out; empty: they were not. `has_mail`: whether it goes by mail, too. `sent_at`: when
    the mail server accepted it. `failed_at`, `error`: when and why it was given up.
    """

    run = models.ForeignKey(ReportRun, on_delete=models.CASCADE, related_name="copies", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    obstacle = models.CharField(max_length=16, blank=True, default="", choices=_OBSTACLES)
    has_mail = models.BooleanField(default=False)
    sent_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=MAX_ERROR, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "user"], name="one_copy_of_a_run")]

    def __str__(self) -> str:
        return f"{self.run_id} for {self.user_id}"


class OverviewSettings(models.Model):
    """The figures that a person chose for the overview of operations (each an `OverviewFigure`), in their order."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    figures = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"overview of {self.user_id}"
