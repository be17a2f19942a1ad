"""Templates that admins publish, all their versions, and the jobs that were created from them."""

import uuid

from django.conf import settings
from django.db import models

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant


class Template(models.Model):
    """A template in the gallery. Without a tenant it is for all. `withdrawn_at`: since then it is not offered."""

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
    """A published version of a template. `spec`: a JobSpec document; `fields`: its open fields (`OpenField`)."""

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
    """The template version that a job was created from."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"{self.job} of {self.version}"
