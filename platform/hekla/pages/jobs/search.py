"""Searches jobs by name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source, named


def _jobs(user: User, text: str, _language: str) -> Iterator[Hit]:
    found = selectors.visible_to(user).filter(named(text)).select_related("tenant").order_by("-id")[:LIMIT_OF_EACH]
    for job in found:
        yield Hit("job", job.name, f"{job.tenant} · {job.phase}", reverse("jobs:detail", args=[job.uid]))


SOURCES = [Source("job", _("Jobs"), "jobs", 10, _jobs)]
