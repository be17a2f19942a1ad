"""What can be found by name. Each feature registers what it has; a search asks all of them, in their order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q
from django.utils.functional import Promise

from hekla.apps.accounts.models import User

LIMIT_OF_EACH = 5
"""So many things of each kind are found at most."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A thing that was found. `note`: what tells it from others of its name; `path`: its page."""

    kind: str
    name: str
    note: str
    path: str


@dataclass(frozen=True, slots=True)
class Source:
    """Things of one kind. `label`: what several of them are called; `order`: its place among the kinds.

    `find` takes who searches, the text and the reader's language, and finds only what that person may see.
    """

    kind: str
    label: str | Promise
    icon: str
    order: int
    find: Callable[[User, str, str], Iterable[Hit]]


_sources: dict[str, Source] = {}


def register(source: Source) -> None:
    """Make things of this kind known to every search."""
    _sources[source.kind] = source


def sources() -> list[Source]:
    """All of them, in their order."""
    return sorted(_sources.values(), key=lambda source: source.order)


def get(kind: str) -> Source:
    """The source of that kind of thing."""
    return _sources[kind]


def named(text: str) -> Q:
    """Rows whose name holds the text, or whose `uid` it is."""
    try:
        return Q(name__icontains=text) | Q(uid=UUID(text))
    except ValueError:
        return Q(name__icontains=text)
