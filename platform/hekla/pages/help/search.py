"""Searches the text of help pages."""

import re
from collections.abc import Iterator
from itertools import islice

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source
from hekla.apps.search.selectors import MAX_LENGTH
from hekla.pages.help import documents

_MARKS = re.compile(r"[*`]")


def _pages(_user: User, text: str, language: str) -> Iterator[Hit]:
    return islice(_matches(text.casefold(), language), LIMIT_OF_EACH)


def _matches(text: str, language: str) -> Iterator[Hit]:
    for name, title in documents.titles(language):
        found = next((line for line in documents.text(name, language).splitlines() if text in line.casefold()), None)
        if found is not None:
            line = _MARKS.sub("", found).strip("#|- ")
            yield Hit("help", title, "" if line == title else line[:MAX_LENGTH], reverse("help:page", args=[name]))


SOURCES = [Source("help", _("Help"), "help", 100, _pages)]
