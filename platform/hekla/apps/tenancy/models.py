"""Tenants and memberships."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import TENANT_ROLE_LABELS, TenantRole

MAX_RETENTION_DAYS, MAX_FILES_GIB = 3650, 10_000_000


class Department(models.Model):
    """A group of tenants. Its heads are admins of all of them."""

    slug = models.SlugField(_("short name"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120)
    description = models.TextField(_("description"), max_length=2000, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class DepartmentHead(models.Model):
    """A person who heads a department."""

    department = models.ForeignKey(Department, on_delete=models.CASCADE, related_name="heads")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="headed_departments")
    since = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["department", "user"], name="one_headship")]

    def __str__(self) -> str:
        return f"{self.user_id} heads {self.department_id}"


class Tenant(models.Model):
    """A team that shares the machines with others. `slug` is its name in URLs and commands.

    `log_days`, `history_days`: how long the logs and the history of a deleted job are kept. `files_gib`: from how many
    GiB of files on people cannot upload more; null: no limit.
    """

    slug = models.SlugField(_("short name"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=120)
    description = models.TextField(_("description"), max_length=2000, blank=True)
    department = models.ForeignKey(
        Department,
        verbose_name=_("department"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="tenants",
    )
    is_active = models.BooleanField(_("active"), default=True)
    log_days = models.PositiveIntegerField(
        _("log retention (days)"), default=30, validators=[MaxValueValidator(MAX_RETENTION_DAYS)]
    )
    history_days = models.PositiveIntegerField(
        _("history retention (days)"),
        default=365,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_RETENTION_DAYS)],
    )
    files_gib = models.PositiveIntegerField(_("limit of files in GiB"), null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(history_days__gte=models.F("log_days")), name="history_outlives_logs"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person in a tenant."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(
        _("role"),
        max_length=16,
        default=TenantRole.MEMBER,
        choices=[(r.value, n) for r, n in TENANT_ROLE_LABELS.items()],
    )
    since = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.tenant_id}: {self.role}"
