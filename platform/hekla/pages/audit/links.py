"""Where the objects of the audit log have their pages."""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlencode

from django.urls import NoReverseMatch
from django.utils.safestring import SafeString

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.audit.objects import AuditObject
from hekla.apps.audit.selectors import AuditEntry
from hekla.pages.frame import html
from hekla.pages.frame.html import text

_BY_KEY = {
    "alert-rule": "alerts:detail",
    "job": "jobs:detail",
    "batch": "batches:detail",
    "flow": "flows:detail",
    "gallery": "gallery:template",
    "price-list": "prices:detail",
    "report": "reports:detail",
    "schedule": "schedules:detail",
    "template": "flows:template",
    "user": "accounts:edit",
}
_BY_NAME = {
    "cluster": "clusters:detail",
    "department": "departments:detail",
    "demonstration": "demonstrations:detail",
    "environment": "clusters:edit_environment",
    "federated-queue": "federated_queues:detail",
    "priority_class": "priorities:edit",
    "queue": "queues:detail",
}
_NEEDS: Mapping[str, Permission] = {
    "cluster": Permission.MANAGE_CLUSTERS,
    "department": Permission.MANAGE_TENANTS,
    "environment": Permission.MANAGE_CLUSTERS,
    "priority_class": Permission.MANAGE_PRIORITY_CLASSES,
    "user": Permission.MANAGE_PEOPLE,
}


def sentence(entry: AuditEntry, user: User) -> SafeString:
    """The sentence of an entry, with a link to its object where this person can open its page."""
    actor = _actor(entry.event.actor_name, entry.event.who)
    return entry.sentence.html(actor=actor, object=_phrase(entry, user))


@lru_cache(maxsize=4096)
def _actor(name: str, words: str) -> SafeString:
    """A person, with a link to what they did. Cached, since few people do most."""
    return SafeString(f'<a href="?{text(urlencode({"person": name}))}">{text(words)}</a>')


def _phrase(entry: AuditEntry, user: User) -> SafeString:
    about = entry.object
    address = _address(entry, user)
    name = f'<a href="{text(address)}">{text(about.name)}</a>' if address else text(about.name)
    return SafeString(text(about.noun).format(name=SafeString(name)))  # the noun may have a user name in it


def _address(entry: AuditEntry, user: User) -> str:
    """The page of the object; empty if there is none that this person can open."""
    about = entry.object
    needed = _NEEDS.get(about.kind)
    if about.is_deleted or (needed and not accounts.may(user, needed)):
        return ""
    if about.kind in ("tenant", "invitation"):
        return html.address("tenancy:detail", entry.tenant.slug) if entry.tenant and entry.tenant.is_active else ""
    return _reversed(about)


def _reversed(about: AuditObject) -> str:
    view, key = (
        (_BY_KEY.get(about.kind), about.key) if about.kind in _BY_KEY else (_BY_NAME.get(about.kind), about.name)
    )
    try:
        return html.address(view, key) if view else ""
    except NoReverseMatch:
        return ""
