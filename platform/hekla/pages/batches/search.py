"""Searches batches by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source, named


def _visible(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.visible_to(user).filter(named(text)).order_by("-id")
    for name, tenant, uid in found.values_list("name", "tenant__name", "uid")[:LIMIT_OF_EACH]:
        yield Hit("batch", name, tenant, reverse("batches:detail", args=[uid]))


SOURCES = [
    Source("batch", _("Batches"), "clone", 40, _visible),
]
