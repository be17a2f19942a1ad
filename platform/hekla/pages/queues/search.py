"""Searches queues by name, including federated queues."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.queues import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source


def _queues(user: User, text: str, _language: str) -> Iterator[Hit]:
    for queue in selectors.visible_to(user).filter(name__icontains=text)[:LIMIT_OF_EACH]:
        yield Hit("queue", queue.name, queue.cluster.name, reverse("queues:detail", args=[queue.name]))
    for span in selectors.federated_visible_to(user).filter(name__icontains=text)[:LIMIT_OF_EACH]:
        yield Hit("queue", span.name, gettext("federated queue"), reverse("spans:detail", args=[span.name]))


SOURCES = [Source("queue", _("Queues"), "queues", 60, _queues)]
