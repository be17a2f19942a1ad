"""Impersonations, with their reasons and times."""

from django.conf import settings
from django.db import models


class ImpersonationSession(models.Model):
    """An admin impersonates a person in one browser, until the admin ends it, at the latest `until`."""

    admin = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=200)
    began_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.admin_id} for {self.person_id}"
