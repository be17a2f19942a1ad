"""Search by name in what the person may see: a few hits of each kind, newest first."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F, QuerySet, Value
from django.urls import reverse

from hekla.apps.accounts.models import User
from hekla.apps.search import registry
from hekla.apps.search.registry import LIMIT_OF_EACH, AnySource, Hit, OwnedSource, named
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights

MIN_LENGTH, MAX_LENGTH = 2, 100
"""The minimum and maximum length of a search text, in characters."""


def find(user: User, text: str, language: str, kind: str = "", rights: Rights | None = None) -> list[Hit]:
    """A few hits of each kind, or of one; none for a text that is too short. Costs about one query per kind; those of
    `OwnedSource` cost one together.

    `rights`: those of the person, if already read.
    """
    text = text.strip()[:MAX_LENGTH].replace("\0", "")
    if len(text) < MIN_LENGTH:
        return []
    sources = [registry.get(kind)] if kind else registry.sources()
    with tenancy.rights_read_once({user.pk: rights} if rights else {}):
        owned = _owned(user, text, [source for source in sources if isinstance(source, OwnedSource)])
        return [hit for source in sources for hit in _hits(source, owned, user, text, language)]


def _hits(source: AnySource, owned: Mapping[str, Sequence[Hit]], user: User, text: str, language: str) -> Iterable[Hit]:
    return owned.get(source.kind, ()) if isinstance(source, OwnedSource) else source.find(user, text, language)


def _owned(user: User, text: str, sources: Sequence[OwnedSource]) -> Mapping[str, Sequence[Hit]]:
    """The newest hits of each of these kinds, from one query."""
    found: dict[str, list[Hit]] = defaultdict(list)
    if not sources:
        return found
    views = {source.kind: source.view for source in sources}
    first, *others = (_rows(source, user, text) for source in sources)
    for kind, name, tenant, state, uid in first.union(*others, all=True):
        note = f"{tenant} · {state}" if state else tenant
        found[kind].append(Hit(kind, name, note, reverse(views[kind], args=[uid])))
    return found


def _rows(source: OwnedSource, user: User, text: str) -> QuerySet[Any, Any]:
    matching = source.visible(user).filter(named(text)).order_by("-id")
    state = F(source.state) if source.state else Value("")
    marked = matching.annotate(source_kind=Value(source.kind), source_state=state)
    found: QuerySet[Any, Any] = marked.values_list("source_kind", "name", "tenant__name", "source_state", "uid")
    return found[:LIMIT_OF_EACH]
