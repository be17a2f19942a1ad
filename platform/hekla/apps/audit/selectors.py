"""The audit log: what people did, newest first, for those who may see it. What the platform did is left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from django.utils.dateparse import parse_date
from django.utils.timezone import make_aware
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.audit.objects import AuditedTenant, AuditObject, ObjectNames
from hekla.apps.audit.sentences import Sentence, sentence
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.words import kind_in_words
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import Forbidden

PAGE = 50
MOST_EXPORTED = 50_000
"""The entries of one file."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The filters; empty: everything. `object`: a part of its name, or its whole subject, for example `queue:7`.

    `since` and `until`: days in the current time zone, both included. `before`: only smaller numbers.
    """

    person: str = ""
    kind: str = ""
    tenant: str = ""
    object: str = ""
    since: date | None = None
    until: date | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action of a person."""

    event: LoggedEvent
    tenant: AuditedTenant | None
    object: AuditObject

    @property
    def words(self) -> str:
        """The kind of action, in words."""
        return kind_in_words(self.event.kind)

    @property
    def tenant_slug(self) -> str | None:
        """The short name of the tenant in which it was done, or None."""
        return self.tenant.slug if self.tenant else None

    @property
    def sentence(self) -> Sentence:
        """Who did what to which object, and what changed."""
        return sentence(self.event, self.object.phrase)


def acts(
    user: User, query: AuditQuery, *, most: int = PAGE, readable: Sequence[AuditedTenant] | None = None
) -> list[AuditEntry]:
    """The newest actions that match the query and that the person may see. Raises Forbidden.

    `readable`: the result of `audited`, if already read.
    """
    tenants = {tenant.pk: tenant for tenant in (audited(user) if readable is None else readable)}
    within = None if accounts.may(user, Permission.SEE_AUDIT) else list(tenants)
    if query.tenant:
        within = [tenant.pk for tenant in tenants.values() if tenant.slug == query.tenant]
    found = event_log.of_people(
        tenants=within,
        person=query.person,
        kind=query.kind,
        named=query.object,
        since=_midnight(query.since),
        until=_midnight(query.until, days_later=1),
        before=query.before,
        limit=most,
    )
    names = ObjectNames(found, tenants)
    return [AuditEntry(event, tenants.get(event.tenant_id or 0), names.of(event)) for event in found]


def all_acts(user: User, query: AuditQuery) -> Iterator[list[AuditEntry]]:
    """The actions of all pages in chunks, at most `MOST_EXPORTED`. Raises Forbidden."""
    left = MOST_EXPORTED
    while left > 0:
        found = acts(user, query, most=min(_AT_ONCE, left))
        yield found
        if len(found) < _AT_ONCE:
            return
        left -= len(found)
        query = replace(query, before=found[-1].event.pk)


def audited(user: User) -> list[AuditedTenant]:
    """The tenants whose audit log the person may see. Raises Forbidden if there are none."""
    tenants = tenancy.all_tenants()
    if not accounts.may(user, Permission.SEE_AUDIT):
        allowed = tenancy.where(user, Permission.SEE_AUDIT)
        if not allowed:
            raise Forbidden(_("Only tenant admins, platform admins and operators can see the audit log."))
        tenants = tenants.filter(pk__in=allowed)
    return [AuditedTenant(*row) for row in tenants.values_list("pk", "slug", "name", "is_active")]


def parse_query(query: Mapping[str, str]) -> AuditQuery:
    """The filters in the query of a URL. Unusable dates and numbers do not filter."""
    before = query.get("before", "")
    return AuditQuery(
        **{name: _text(query, name) for name in ("person", "kind", "tenant", "object")},
        since=_day(query, "since"),
        until=_day(query, "until"),
        before=int(before) if before.isdecimal() and len(before) < 19 else None,  # noqa: PLR2004
    )


def _text(query: Mapping[str, str], name: str) -> str:
    return query.get(name, "").replace("\0", "").strip()[:150]


def _day(query: Mapping[str, str], name: str) -> date | None:
    try:
        return parse_date(_text(query, name))
    except ValueError:
        return None


def _midnight(day: date | None, days_later: int = 0) -> datetime | None:
    """The start of a day; None without one, and at the ends of the calendar."""
    if day is None:
        return None
    try:
        return make_aware(datetime.combine(day + timedelta(days=days_later), time())).astimezone(UTC)
    except OverflowError:
        return None
