"""Searches flows and templates by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.flows import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source, named


def _visible(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.visible_to(user).filter(named(text)).order_by("-id")
    for name, tenant, uid in found.values_list("name", "tenant__name", "uid")[:LIMIT_OF_EACH]:
        yield Hit("flow", name, tenant, reverse("flows:detail", args=[uid]))


def _templates(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.templates(user).filter(named(text)).order_by("-id")
    for name, tenant, uid in found.values_list("name", "tenant__name", "uid")[:LIMIT_OF_EACH]:
        yield Hit("template", name, tenant, reverse("flows:template", args=[uid]))


SOURCES = [
    Source("flow", _("Flows"), "flows", 20, _visible),
    Source("template", _("Templates"), "flows", 30, _templates),
]
