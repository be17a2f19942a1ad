"""Searches schedules by name."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.schedules import selectors
from hekla.apps.search.registry import OwnedSource

SOURCES = [OwnedSource("schedule", _("Schedules"), "clock", 50, selectors.searchable, "schedules:detail")]
