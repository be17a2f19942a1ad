"""Searches the text of help pages."""

import re
from collections.abc import Iterator
from functools import lru_cache
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
        page = documents.text(name, language)
        if text not in _folded(page):  # as most do not
            continue
        found = next((line for line in page.splitlines() if text in line.casefold()), None)
        if found is not None:
            line = _MARKS.sub("", found).strip("#|- ")
            yield Hit("help", title, "" if line == title else line[:MAX_LENGTH], reverse("help:page", args=[name]))


@lru_cache(maxsize=256)
def _folded(page: str) -> str:
    return page.casefold()


SOURCES = [Source("help", _("Help"), "help", 100, _pages)]
