"""What is known of a session besides what it carries."""

from django.conf import settings
from django.db import models


class Visit(models.Model):
    """A browser that signed in. It lasts as long as the session with that key does."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visits")
    session_key = models.CharField(max_length=40, db_index=True)
    browser = models.CharField(max_length=120, blank=True)
    address = models.CharField(max_length=45, blank=True)
    since = models.DateTimeField()
    last_active_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.browser} of {self.user_id}"
