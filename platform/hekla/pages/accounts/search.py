"""Searches people by name."""

from collections.abc import Iterable, Iterator

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts import selectors
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source
from hekla.apps.tenancy import selectors as tenancy


def _people(user: User, text: str, _language: str) -> Iterator[Hit]:
    manages = selectors.may(user, Permission.MANAGE_PEOPLE)
    matches = Q(username__icontains=text) | Q(display_name__icontains=text)
    known: Iterable[User] = tenancy.known_people(user).filter(matches)[:LIMIT_OF_EACH]
    for person in known:
        jobs = f"{reverse('jobs:list')}?q={person.username}"
        path = reverse("accounts:edit", args=[person.pk]) if manages else jobs
        yield Hit("person", str(person), person.username, path)


SOURCES = [Source("person", _("People"), "people", 90, _people)]
