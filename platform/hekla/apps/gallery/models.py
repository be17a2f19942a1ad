"""Templates that admins publish, each version as it was, and which jobs were begun with it."""

import uuid

from django.conf import settings
from django.db import models

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant


class Template(models.Model):
    """A card of the gallery. Without a tenant it is for all of them. `withdrawn_at`: it is offered no more."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="+")
    title = models.CharField(max_length=80)
    description = models.TextField(max_length=2000, blank=True)
    version = models.PositiveIntegerField(default=0)
    published_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.title


class TemplateVersion(models.Model):
    """A template as it was published once. `spec` is a JobSpec document, `fields` what of it is open."""

    template = models.ForeignKey(Template, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    fields = models.JSONField(default=list)
    publisher = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    published_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["template", "number"], name="one_version_of_a_number")]

    def __str__(self) -> str:
        return f"{self.template} {self.number}"


class TemplateUse(models.Model):
    """That a job was begun with a version of a template."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"{self.job} of {self.version}"
