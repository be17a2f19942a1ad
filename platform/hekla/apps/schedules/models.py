"""Schedules, and the outcome of each time at which they were due."""

import uuid

from django.conf import settings
from django.db import models

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.domain.schedule_runs import SkipReason


class Schedule(models.Model):
    """A recurring job. `owner`: the person who last changed it; its jobs are submitted in this person's name.

    All runs up to `looked_at` are decided; `next_at` is the first due time after it, even if the schedule is suspended.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=40)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    spec = models.JSONField()
    is_suspended = models.BooleanField(default=False)
    looked_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="one_schedule_of_a_name")]
        indexes = [
            models.Index(fields=["next_at"], condition=models.Q(is_suspended=False), name="schedule_by_next_time")
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleRun(models.Model):
    """The outcome of one due time, or of `count` times that were missed between `due_at` and `until`."""

    class Outcome(models.TextChoices):
        STARTED = "started"
        SKIPPED = "skipped"
        MISSED = "missed"

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="runs")
    due_at = models.DateTimeField()
    by_hand = models.BooleanField(default=False)
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    reason = models.CharField(max_length=16, blank=True, choices=[(skip.value, skip.value) for skip in SkipReason])
    message = models.TextField(blank=True)
    until = models.DateTimeField(null=True)
    count = models.PositiveIntegerField(default=1)
    job = models.OneToOneField(Job, null=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "due_at", "by_hand"], name="one_outcome_of_a_time"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.due_at}: {self.outcome}"
