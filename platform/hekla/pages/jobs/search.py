"""Searches jobs by name."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.jobs import selectors
from hekla.apps.search.registry import OwnedSource

SOURCES = [OwnedSource("job", _("Jobs"), "jobs", 10, selectors.searchable, "jobs:detail", "phase")]
