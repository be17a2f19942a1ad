"""Messages of alerts: notifications of people, and signed webhooks."""

import json
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import PlatformRole, TenantRole
from hekla.apps.alerts.encryption import COLUMN
from hekla.apps.alerts.models import AlertAction
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.outgoing import post_signed
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.alert_rules import AlertAudience
from hekla.lib.text import escape_bidi_in_json


def notify(action: AlertAction, *, now: datetime) -> int:
    """Notify the people of the action, in the console and by mail. Call in a unit of work. Returns their number."""
    first = action.facts["subjects"][0]
    facts = {
        "rule": action.rule.name,
        "rule_uid": str(action.rule.uid),
        "moment": action.moment,
        "about": first["name"],
        "value": first["value"],
        "threshold": action.facts["threshold"],
        "count": action.facts["count"],
        "severity": action.facts["severity"],
        **{name: action.facts[name] for name in ("action", "due_at", "is_flapping") if action.facts.get(name)},
    }
    key = f"alert:{action.uid}"
    people = _people(action)
    for user in people:
        notifications.tell_of_themselves(user, Moment.ALERT, key, at=now, facts=facts, always_mail=True)
    return len(people)


def _people(action: AlertAction) -> list[User]:
    """The active people that it names, by name or role; for a tenant's rule, those that are its members now."""
    rule, roles = action.rule, action.spec["roles"]
    everybody = accounts.everybody().filter(is_active=True)
    found = {*everybody.filter(username__in=action.spec["people"])}
    if AlertAudience.OWNER in roles:
        found |= {*everybody.filter(pk=rule.owner_id)}
    if rule.tenant is None:
        if AlertAudience.OPERATORS in roles:
            found |= {*everybody.filter(platform_role__in=[PlatformRole.OPERATOR, PlatformRole.ADMIN])}
        return sorted(found, key=lambda user: user.pk)
    members = {one.user_id: one.role for one in tenancy.members(rule.tenant)}
    if AlertAudience.TENANT_ADMINS in roles:
        admins = [pk for pk, role in members.items() if role == TenantRole.ADMIN]
        found |= {*everybody.filter(pk__in=admins)}
    return sorted((user for user in found if user.pk in members), key=lambda user: user.pk)


def call_webhook(action: AlertAction, *, now: datetime) -> None:
    """Post the action, signed. Raises NotificationNotSent, Refused (address not allowed), DecryptionError."""
    secret = COLUMN.decrypt(action.rule.webhook_secret)
    post_signed(action.spec["url"], body(action), secret, delivery=str(action.uid), now=now)


def body(action: AlertAction) -> bytes:
    """The JSON of a webhook. `id`: equal in all attempts."""
    path = reverse("alerts:detail", args=[action.rule.uid])
    document: dict[str, Any] = {
        "id": str(action.uid),
        "moment": action.moment,
        "at": action.created_at.isoformat(),
        "rule": {
            "uid": str(action.rule.uid),
            "name": action.rule.name,
            "url": settings.PUBLIC_URL.rstrip("/") + path,
            "tenant": action.rule.tenant.slug if action.rule.tenant else None,
        },
        **action.facts,
    }
    return escape_bidi_in_json(json.dumps(document, ensure_ascii=False)).encode()
