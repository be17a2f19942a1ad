"""Quotas."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.tenancy.models import Tenant


class Quota(models.Model):
    """Limits of a tenant, of each of its members, or of one member (instead of those of each member). Null: no limit.

    `jobs`: unfinished jobs; `sessions`: debugging sessions among them.
    `gpu_hours`: hours per month in UTC on cards of any kind together, from a pod's bind to its end.
    `resources`: quantities by name that pods may hold at once in each cluster.
    """

    class Of(models.TextChoices):
        TENANT = "tenant", _("tenant")
        EACH = "each", _("each member")
        ONE = "one", _("one member")

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="quotas")
    of = models.CharField(max_length=8, choices=Of.choices)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="quotas")
    jobs = models.PositiveIntegerField(_("unfinished jobs"), null=True)
    sessions = models.PositiveIntegerField(_("debugging sessions"), null=True)
    gpu_hours = models.PositiveIntegerField(_("GPU-hours per month"), null=True)

    resources = models.JSONField(_("resources in use"), default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "of", "user"], nulls_distinct=False, name="one_quota_of_each")
        ]

    @property
    def is_empty(self) -> bool:
        """Whether it sets no limit."""
        return self.jobs is None and self.sessions is None and self.gpu_hours is None and not self.resources

    def __str__(self) -> str:
        return f"{self.of} {self.user_id or ''} of {self.tenant_id}"
