"""The registry of searchable kinds. Each feature registers its own; a search queries all of them, in order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.functional import Promise

from hekla.apps.accounts.models import User

LIMIT_OF_EACH = 5
"""The maximum number of hits of each kind."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result. `note`: distinguishes results of the same name; `path`: the path of its page."""

    kind: str
    name: str
    note: str
    path: str


@dataclass(frozen=True, slots=True)
class Source:
    """A searchable kind. `label`: its name in the plural; `order`: its position among the kinds.

    `find` takes the person, the text and the reader's language, and returns only what the person may see.
    """

    kind: str
    label: str | Promise
    icon: str
    order: int
    find: Callable[[User, str, str], Iterable[Hit]]


@dataclass(frozen=True, slots=True)
class OwnedSource:
    """A searchable kind of things with a name, a tenant and a uid. One query searches all such kinds.

    `visible`: those that a person may see. `view`: the page of one of them, by its uid. `state`: the field that stands
    beside the tenant, if any.
    """

    kind: str
    label: str | Promise
    icon: str
    order: int
    visible: Callable[[User], QuerySet[Any]]
    view: str
    state: str = ""


AnySource = Source | OwnedSource
_sources: dict[str, AnySource] = {}


def register(source: AnySource) -> None:
    """Add this kind to all searches."""
    _sources[source.kind] = source


def sources() -> list[AnySource]:
    """All sources, in order."""
    return sorted(_sources.values(), key=lambda source: source.order)


def get(kind: str) -> AnySource:
    """The source of that kind."""
    return _sources[kind]


def named(text: str) -> Q:
    """A filter for rows whose name contains the text, or whose `uid` equals it."""
    try:
        return Q(name__icontains=text) | Q(uid=UUID(text))
    except ValueError:
        return Q(name__icontains=text)
