"""Searches jobs by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source, named


def _jobs(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.visible_to(user).filter(named(text)).order_by("-id")
    for name, tenant, phase, uid in found.values_list("name", "tenant__name", "phase", "uid")[:LIMIT_OF_EACH]:
        yield Hit("job", name, f"{tenant} · {phase}", reverse("jobs:detail", args=[uid]))


SOURCES = [Source("job", _("Jobs"), "jobs", 10, _jobs)]
