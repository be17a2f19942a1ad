"""Descriptions of login sessions, besides the data in Django's session."""

from django.conf import settings
from django.db import models


class LoginSession(models.Model):
    """A browser in which a person signed in. It is valid as long as Django's session with its key."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visits")
    session_key = models.CharField(max_length=40, db_index=True)
    browser = models.CharField(max_length=120, blank=True)
    address = models.CharField(max_length=45, blank=True)
    since = models.DateTimeField()
    last_active_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.browser} of {self.user_id}"
