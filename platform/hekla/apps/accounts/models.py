"""People, API tokens and sign-in links. Secrets are stored as digests only."""

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS
from hekla.apps.accounts.scopes import Scope, allows, label


class User(AbstractUser):
    """A person. `platform_role` is empty for people who only have roles in tenants.

    `time_zone`: in which pages show times; empty: that of the browser.
    """

    display_name = models.CharField(_("name"), max_length=120, blank=True)
    platform_role = models.CharField(
        _("platform role"), max_length=16, blank=True, choices=[(r.value, n) for r, n in PLATFORM_ROLE_LABELS.items()]
    )
    time_zone = models.CharField(max_length=64, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return self.display_name or self.username


class ApiToken(models.Model):
    """A token for programs. Its secret is shown once; `prefix`: its first characters; `scopes`: its allowed uses."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=16))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"

    def allows(self, needed: Scope) -> bool:
        """Whether the token may be used where `needed` is required."""
        return allows(self.scopes, needed)

    @property
    def scope_labels(self) -> list[tuple[str, str]]:
        """Each scope with its label."""
        return [(scope, label(scope)) for scope in self.scopes]


class SignInLink(models.Model):
    """A link that signs one person in, once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user_id}"
