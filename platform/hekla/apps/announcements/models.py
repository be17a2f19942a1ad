"""Announcements, and who has hidden them."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from hekla.apps.tenancy.models import Tenant

MAX_TEXT = 500


class Announcement(models.Model):
    """A text for people, from `begin_at` until `end_at` (null: until it is withdrawn).

    `text_zh`: in Chinese; empty: everybody reads the English one. `tenants`: whose members it is for; none: everybody.
    """

    class Level(models.TextChoices):
        INFO = "info", _("info")
        WARNING = "warning", _("warning")
        CRITICAL = "critical", _("critical")

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    text = models.CharField(_("Text in English"), max_length=MAX_TEXT)
    text_zh = models.CharField(_("Text in Chinese"), max_length=MAX_TEXT, blank=True)
    level = models.CharField(_("Level"), max_length=16, choices=Level.choices, default=Level.INFO)
    begin_at = models.DateTimeField(_("From"))
    end_at = models.DateTimeField(_("Until"), null=True, blank=True)
    tenants = models.ManyToManyField(Tenant, verbose_name=_("tenants"), blank=True, related_name="+")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def words(self) -> str:
        """The text in the reader's language."""
        is_chinese = (get_language() or "").startswith("zh")
        return self.text_zh if is_chinese and self.text_zh else self.text


class Dismissal(models.Model):
    """A person has hidden an announcement."""

    announcement = models.ForeignKey(Announcement, on_delete=models.CASCADE, related_name="dismissals")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["announcement", "user"], name="one_dismissal_of_a_person")]

    def __str__(self) -> str:
        return f"{self.announcement_id} hidden by {self.user_id}"
