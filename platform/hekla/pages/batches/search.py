"""Searches batches by name."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.batches import selectors
from hekla.apps.search.registry import OwnedSource

SOURCES = [OwnedSource("batch", _("Batches"), "clone", 40, selectors.searchable, "batches:detail")]
