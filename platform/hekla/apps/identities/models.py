"""Linked accounts: identities of people at providers."""

from django.conf import settings
from django.db import models


class Identity(models.Model):
    """A person's account at a provider. Issuer and subject identify it for ever; addresses and names can be reused."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    provider = models.CharField(max_length=40)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_person_per_identity")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
