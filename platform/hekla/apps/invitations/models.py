"""Invitations. Only a digest of the link's secret is stored."""

from django.conf import settings
from django.db import models

from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS, TENANT_ROLE_LABELS
from hekla.apps.tenancy.models import Tenant


class Invitation(models.Model):
    """An invitation to a tenant. Anybody with the link can accept it; the address is only a note and proves nothing.

    It is open until it is accepted or revoked; an expired one can be sent again. `username` and `display_name` are
    initial values of the form for the new account. `grants`: further values for the new member (see `extras`).
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=16, choices=[(r.value, n) for r, n in TENANT_ROLE_LABELS.items()])
    platform_role = models.CharField(
        max_length=16, blank=True, choices=[(r.value, n) for r, n in PLATFORM_ROLE_LABELS.items()]
    )
    email = models.EmailField(blank=True)
    username = models.CharField(max_length=150, blank=True)
    display_name = models.CharField(max_length=120, blank=True)
    grants = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="accepted_invitations"
    )
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(accepted_at=None) | models.Q(revoked_at=None), name="accepted_or_revoked"
            )
        ]

    def __str__(self) -> str:
        return f"{self.email or self.username or 'link'} to {self.tenant_id}: {self.role}"


class InvitationMail(models.Model):
    """The encrypted link of an invitation, still to be mailed. `error`: of the last attempt; without `due_at` there
    are no more attempts.
    """

    invitation = models.OneToOneField(Invitation, on_delete=models.CASCADE, related_name="letter")
    link = models.BinaryField()
    language = models.CharField(max_length=16)
    due_at = models.DateTimeField(null=True, db_index=True)
    attempts = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"letter of invitation {self.invitation_id}"
