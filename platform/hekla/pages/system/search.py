"""The page of the system, found by its name."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.search.registry import Hit, Source


def _pages(user: User, text: str, _language: str) -> Iterator[Hit]:
    name = _("System status")
    if text.casefold() in name.casefold() and accounts.may(user, Permission.MANAGE_CLUSTERS):
        yield Hit("system", name, "", reverse("system:show"))


SOURCES = [Source("system", gettext_lazy("System status"), "chip", 190, _pages)]
