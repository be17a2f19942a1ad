"""Changes to quotas."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.quotas import selectors
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, Invalid, Problem
from hekla.domain.resources import format_quantity, parse_quantity

DEFAULTS: Mapping[str, Any] = {"jobs": 2000, "resources": {"pods": "1000"}}
"""The limits of a new tenant, unless the admin chooses others: against a flood of jobs, with room for two sweeps."""


def create_tenant(
    *, slug: str, name: str, description: str = "", bounds: Mapping[str, Any] = DEFAULTS, actor: Actor, now: datetime
) -> Tenant:
    """A new tenant with these limits. Raises Forbidden, Refused (short name taken), Invalid for unknown resources."""
    limits = {name: value for name, value in checked(bounds).items() if value not in (None, {})}
    with unit_of_work():
        tenant = tenancy.create(slug=slug, name=name, description=description, actor=actor, now=now)
        if limits:
            bound(tenant=tenant, of=Quota.Of.TENANT, user=None, bounds=limits, actor=actor, now=now)
    return tenant


def set_quota(
    *,
    tenant: Tenant,
    of: Quota.Of,
    user: User | None,
    bounds: Mapping[str, Any],
    by: User,
    actor: Actor,
    now: datetime,
) -> None:
    """Set these limits, by field name; others stay. A quota without any limit is deleted.

    Raises Forbidden, Invalid (resources that no node has).
    """
    if not selectors.may_set(by, tenant, of):
        raise Forbidden(_("Your role does not allow this. Ask a platform admin or a tenant admin."))
    bound(tenant=tenant, of=of, user=user, bounds=checked(bounds), actor=actor, now=now)


def checked(bounds: Mapping[str, Any]) -> dict[str, Any]:
    """The limits as they are stored. Raises Invalid."""
    return {**bounds, "resources": _amounts(bounds["resources"])} if bounds.get("resources") else dict(bounds)


def bound(
    *,
    tenant: Tenant,
    of: Quota.Of,
    user: User | None,
    bounds: Mapping[str, Any],
    actor: Actor,
    now: datetime,
) -> None:
    """Set checked limits. A quota without any limit is deleted. Raises Forbidden."""
    tenancy.require_actor(actor, tenant, selectors.PERMISSIONS[of])
    with unit_of_work():
        changes.lock(tenant)
        quota, _is_new = Quota.objects.get_or_create(tenant=tenant, of=of, user=user)
        changed = changes.apply(quota, bounds)
        if quota.is_empty:
            quota.delete()
        else:
            quota.save(update_fields=list(changed))
        event = events.QuotaSet(of=of.value, username=user.username if user else "", changes=changed)
        record(event, subject=f"tenant:{tenant.pk}", tenant=tenant.pk, actor=actor, at=now)


def _amounts(resources: Mapping[str, str]) -> dict[str, str]:
    """The stored form. Raises Invalid for a resource that no node has: its limit would have no effect, unnoticed."""
    known = {"cpu", "memory", "pods"}.union(*(node.allocatable for node in clusters.nodes()))
    if unknown := sorted(resources.keys() - known):
        sentence = _("Unknown resource “%(name)s”. Available: %(names)s.")
        facts = {"name": unknown[0][:63], "names": _(", ").join(sorted(known))}
        raise Invalid([Problem("resources", sentence % facts)])
    return {name: format_quantity(name, parse_quantity(name, text)) for name, text in resources.items()}
