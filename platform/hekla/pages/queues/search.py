"""Searches queues by name, including federated queues."""

from collections.abc import Iterator
from typing import Any

from django.db.models import F, QuerySet, Value
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.queues import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source


def _queues(user: User, text: str, _language: str) -> Iterator[Hit]:
    both: tuple[QuerySet[Any], QuerySet[Any]] = (
        selectors.visible_to(user).annotate(place=F("cluster__name")),
        selectors.federated_visible_to(user).annotate(place=Value("")),
    )
    own, federated = (
        some.filter(name__icontains=text).order_by("name").values_list("name", "place")[:LIMIT_OF_EACH] for some in both
    )
    for name, place in sorted(own.union(federated, all=True), key=lambda row: not row[1]):
        page = "queues:detail" if place else "federated_queues:detail"
        yield Hit("queue", name, place or gettext("federated queue"), reverse(page, args=[name]))


SOURCES = [Source("queue", _("Queues"), "queues", 60, _queues)]
