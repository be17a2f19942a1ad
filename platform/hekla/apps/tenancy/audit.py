"""The audit log: who did what and when. It has the events of people, without those of the platform itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.words import kind_in_words
from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.audit_words import describe_value
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Forbidden

PAGE = 50
_MAX_TEXT = 300
_FOR_PROGRAMS = {"message_facts"}
"""Fields that repeat the message of the event as data."""


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The filters; empty: everything. `before`: only events with a smaller number."""

    person: str = ""
    kind: str = ""
    tenant: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action of a person."""

    event: LoggedEvent
    tenant: Tenant | None

    @property
    def words(self) -> str:
        """The kind of action, in words."""
        return kind_in_words(self.event.kind)

    @property
    def tenant_slug(self) -> str | None:
        """The short name of the tenant in which it was done, or None."""
        return self.tenant.slug if self.tenant else None

    @property
    def facts(self) -> str:
        """The fields of the event in words, shortened."""
        values = [(name, value) for name, value in self.event.payload.items() if value and name not in _FOR_PROGRAMS]
        return ", ".join(f"{name}: {describe_value(self.event.kind, name, value)}" for name, value in values)[
            :_MAX_TEXT
        ]


def acts(user: User, query: AuditQuery, *, most: int = PAGE) -> list[AuditEntry]:
    """The newest actions that match the query and that the person may see. Raises Forbidden."""
    tenants = {tenant.pk: tenant for tenant in audited(user)}
    within = None if accounts.may(user, Permission.SEE_AUDIT) else list(tenants)
    if query.tenant:
        within = [tenant.pk for tenant in tenants.values() if tenant.slug == query.tenant]
    found = event_log.of_people(tenants=within, person=query.person, kind=query.kind, before=query.before, limit=most)
    return [AuditEntry(event, tenants.get(event.tenant_id or 0)) for event in found]


def audited(user: User) -> list[Tenant]:
    """The tenants whose audit log the person may see. Raises Forbidden if there are none."""
    if accounts.may(user, Permission.SEE_AUDIT):
        return list(selectors.all_tenants())
    allowed = selectors.where(user, Permission.SEE_AUDIT)
    if not allowed:
        raise Forbidden(_("Only tenant admins, platform admins and operators can see the audit log."))
    return list(selectors.all_tenants().filter(pk__in=allowed))


def parse_query(query: Mapping[str, str]) -> AuditQuery:
    """The filters in the query of a URL."""
    before = query.get("before", "")
    number = int(before) if before.isdecimal() and len(before) < 19 else None  # noqa: PLR2004
    return AuditQuery(_text(query, "person"), _text(query, "kind"), _text(query, "tenant"), number)


def _text(query: Mapping[str, str], name: str) -> str:
    return query.get(name, "").replace("\0", "").strip()[:150]
