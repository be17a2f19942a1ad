"""Searches flows and templates by name."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.flows import selectors
from hekla.apps.search.registry import OwnedSource

SOURCES = [
    OwnedSource("flow", _("Flows"), "flows", 20, selectors.searchable, "flows:detail"),
    OwnedSource("template", _("Templates"), "flows", 30, selectors.searchable_templates, "flows:template"),
]
