"""Search by name in what the person may see: a few hits of each kind, newest first."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, F, Q, QuerySet, TextField, UUIDField, Value
from django.urls import reverse

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledValues, OneOf, Parameter
from hekla.apps.search import registry
from hekla.apps.search.registry import LIMIT_OF_EACH, AnySource, Hit, OwnedSource
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
    views, uid = {source.kind: source.view for source in sources}, _uid(text)
    sees_all = accounts.may(user, Permission.SEE_EVERYTHING)
    values = {"text": text, "uid": uid, "tenants": [] if sees_all else tenancy.where(user, Permission.SEE_TENANT)}
    for kind, name, tenant, state, key in _query(tuple(views), sees_all, uid is not None).rows(**values):
        note = f"{tenant} · {state}" if state else tenant
        found[kind].append(Hit(kind, name, note, reverse(views[kind], args=[key])))
    return found


def _uid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@cache
def _query(kinds: tuple[str, ...], sees_all: bool, has_uid: bool) -> CompiledValues:
    """Compiled once, since Django takes longer to build a union than the database to run it."""
    return CompiledValues(lambda: _union([registry.get(kind) for kind in kinds], sees_all, has_uid))


def _union(sources: Sequence[AnySource], sees_all: bool, has_uid: bool) -> QuerySet[Any, Any]:
    first, *others = (_rows(one, sees_all, has_uid) for one in sources if isinstance(one, OwnedSource))
    return first.union(*others, all=True)


def _rows(source: OwnedSource, sees_all: bool, has_uid: bool) -> QuerySet[Any, Any]:
    """The newest rows with the text in their name, or with this uid, in the tenants of the parameter `tenants`."""
    matching = Q(name__icontains=Parameter("text", TextField()))
    if has_uid:
        matching |= Q(uid=Parameter("uid", UUIDField()))
    rows = source.rows().filter(matching).order_by("-id")
    if not sees_all:
        rows = rows.filter(OneOf("tenant", "tenants", BigIntegerField()))
    state = F(source.state) if source.state else Value("")
    marked = rows.annotate(source_kind=Value(source.kind), source_state=state)
    found: QuerySet[Any, Any] = marked.values_list("source_kind", "name", "tenant__name", "source_state", "uid")
    return found[:LIMIT_OF_EACH]
