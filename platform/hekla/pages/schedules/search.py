"""Searches schedules by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.schedules import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source, named


def _visible(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.visible_to(user).filter(named(text)).order_by("-id")
    for name, tenant, uid in found.values_list("name", "tenant__name", "uid")[:LIMIT_OF_EACH]:
        yield Hit("schedule", name, tenant, reverse("schedules:detail", args=[uid]))


SOURCES = [
    Source("schedule", _("Schedules"), "clock", 50, _visible),
]
