"""Batches: many jobs in one submission."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant


class Batch(models.Model):
    """Many jobs in one submission. `spec`: the document of the sweep; empty for a file.

    `ended_at`: when it was noticed that all of its jobs had ended; null while any has not.
    """

    class Kind(models.TextChoices):
        SWEEP = "sweep"
        FILE = "file"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=40)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    spec = models.JSONField(default=dict)
    submitted_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, default=None, db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="one_batch_of_a_name")]
        indexes = [
            models.Index(fields=["tenant", "-submitted_at"], name="batch_by_tenant"),
            models.Index(fields=["id"], condition=models.Q(ended_at__isnull=True), name="batch_unended"),
        ]

    def __str__(self) -> str:
        return self.name


class BatchJob(models.Model):
    """A job of a batch. A retry adds a row with the same number and a higher attempt; the last attempt counts."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="members")
    number = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField(default=1)
    parameters = models.JSONField(default=dict)
    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "number", "attempt"], name="one_job_of_an_attempt")]

    def __str__(self) -> str:
        return f"{self.batch_id}: {self.number}, attempt {self.attempt}"
