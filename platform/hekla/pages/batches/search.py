"""Searches batches by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source, named


def _visible(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.visible_to(user).filter(named(text)).select_related("tenant").order_by("-id")[:LIMIT_OF_EACH]
    for row in found:
        yield Hit("batch", row.name, str(row.tenant), reverse("batches:detail", args=[row.uid]))


SOURCES = [
    Source("batch", _("Batches"), "clone", 40, _visible),
]
