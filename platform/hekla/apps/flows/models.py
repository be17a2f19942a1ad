"""Templates of jobs, and the current state of flows. Their history is in the event log."""

import uuid

from django.conf import settings
from django.db import models

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.domain.phases import FlowPhase


class JobTemplate(models.Model):
    """A job that a tenant has saved under a name. `spec`: a JobSpec document with that name."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=53)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    spec = models.JSONField()
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="one_template_of_a_name")]

    def __str__(self) -> str:
        return self.name


class Flow(models.Model):
    """A flow that was started. `ended_at`: since then nothing more happens; `stopped_at`: when a person stopped it."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=53)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    spec = models.JSONField()
    phase = models.CharField(
        max_length=16, choices=[(phase.value, phase.value) for phase in FlowPhase], default=FlowPhase.PENDING
    )
    started_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=models.Q(deleted_at__isnull=True), name="one_flow_of_a_name"
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "-started_at"], name="flow_by_tenant"),
            models.Index(fields=["id"], condition=models.Q(ended_at__isnull=True), name="flow_alive"),
        ]

    def __str__(self) -> str:
        return self.name


class FlowStep(models.Model):
    """One job of a flow. `spec`: the job to submit, fixed when the flow was started.

    `refusal`: why the last attempt to submit it failed. `job` is null before `started_at`, and after the row of a
    deleted job is removed at the end of the tenant's retention.
    """

    flow = models.ForeignKey(Flow, on_delete=models.CASCADE, related_name="steps")
    place = models.PositiveIntegerField()
    name = models.CharField(max_length=53)
    spec = models.JSONField()
    job = models.OneToOneField(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    started_at = models.DateTimeField(null=True)
    refusal = models.TextField(blank=True)
    refused_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["place"]
        constraints = [models.UniqueConstraint(fields=["flow", "name"], name="one_step_of_a_name")]

    def __str__(self) -> str:
        return self.name
