"""Presets: saved jobs that new submissions can start from, of a person or of a tenant."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from hekla.apps.tenancy.models import Tenant

MAX_NAME = 60


class Preset(models.Model):
    """A job under a name. Without a tenant only its owner has it. `spec` is a JobSpec document.

    `is_default`: new jobs start from it unless the person chooses otherwise; a person's own goes before a tenant's.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=MAX_NAME)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="+")
    spec = models.JSONField()
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], condition=Q(tenant__isnull=True), name="one_own_preset_of_a_name"
            ),
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=Q(tenant__isnull=False), name="one_tenant_preset_of_a_name"
            ),
            models.UniqueConstraint(
                fields=["owner"], condition=Q(tenant__isnull=True, is_default=True), name="one_own_default_preset"
            ),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(tenant__isnull=False, is_default=True), name="one_tenant_default_preset"
            ),
        ]

    def __str__(self) -> str:
        return self.name
