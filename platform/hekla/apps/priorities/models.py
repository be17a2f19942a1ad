"""Priority classes."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.tenancy.models import Tenant
from hekla.domain.job_kinds import MAX_PRIORITY


class PriorityClass(models.Model):
    """A named priority. Jobs copy its values when they are submitted; later changes affect only later jobs.

    `tenants`: who may use it; none: everybody. `is_default`: for jobs without a priority, if they may use it.
    """

    name = models.SlugField(_("name"), max_length=63, unique=True)
    value = models.IntegerField(
        _("value"), validators=[MinValueValidator(-MAX_PRIORITY), MaxValueValidator(MAX_PRIORITY)]
    )
    description = models.TextField(_("description"), max_length=2000, blank=True)
    is_default = models.BooleanField(_("Default class"), default=False)
    never_preempts = models.BooleanField(_("never evicts other pods"), default=False)
    is_offered = models.BooleanField(_("available to new jobs"), default=True)
    tenants = models.ManyToManyField(Tenant, verbose_name=_("tenants"), blank=True, related_name="priority_classes")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="one_default_priority_class"
            )
        ]

    def __str__(self) -> str:
        return self.name
