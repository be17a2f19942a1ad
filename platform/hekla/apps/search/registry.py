"""The registry of searchable kinds. Each feature registers its own; a search queries all of them, in order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
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

    `rows`: all of them; a search finds those in the tenants that the person sees. `view`: the page of one of them, by
    its uid. `state`: the field that stands beside the tenant, if any.
    """

    kind: str
    label: str | Promise
    icon: str
    order: int
    rows: Callable[[], QuerySet[Any]]
    view: str
    state: str = ""


AnySource = Source | OwnedSource
_groups: list[Callable[[], Iterable[AnySource]]] = []
_sources: list[AnySource] = []


def add_sources(group: Callable[[], Iterable[AnySource]]) -> None:
    """Add these kinds to all searches. The function is called at the first search, so it can import them only then."""
    _groups.append(group)
    _sources.clear()


def sources() -> Sequence[AnySource]:
    """All sources, in order."""
    if not _sources:
        found = sorted((source for group in _groups for source in group()), key=lambda source: source.order)
        _sources[:] = found
        return found
    return _sources


def get(kind: str) -> AnySource:
    """The source of that kind. Raises KeyError."""
    for source in sources():
        if source.kind == kind:
            return source
    raise KeyError(kind)
