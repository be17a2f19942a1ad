"""People and their keys. Secrets are kept as digests only."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS


class User(AbstractUser):
    """A person. `platform_role` is empty for those who are only members of tenants."""

    display_name = models.CharField(_("name"), max_length=120, blank=True)
    platform_role = models.CharField(
        _("platform role"), max_length=16, blank=True, choices=[(r.value, n) for r, n in PLATFORM_ROLE_LABELS.items()]
    )

    def __str__(self) -> str:
        return self.display_name or self.username


class ApiToken(models.Model):
    """A key for programs. The key itself is shown once; `prefix` tells tokens apart."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"


class SignInLink(models.Model):
    """A link that signs one person in, once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user_id}"
