"""Searches nodes by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source


def _nodes(_user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.nodes().filter(name__icontains=text).values_list("name", "cluster__name", "pk")
    for name, cluster, pk in found[:LIMIT_OF_EACH]:
        yield Hit("node", name, cluster, reverse("clusters:node", args=[pk]))


SOURCES = [Source("node", _("Nodes"), "nodes", 70, _nodes)]
