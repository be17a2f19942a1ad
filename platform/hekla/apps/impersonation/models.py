"""Who acted for whom, why, and for how long."""

from django.conf import settings
from django.db import models


class Acting(models.Model):
    """An admin acts for a person in one browser: until they end it, and never after `until`."""

    admin = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=200)
    began_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.admin_id} for {self.person_id}"
