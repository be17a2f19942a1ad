"""Changes to tenants and their members."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission, TenantRole
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import MAX_FILES_GIB, MAX_RETENTION_DAYS, Membership, Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem, Refused


def require(user: User, tenant: Tenant, permission: Permission) -> None:
    """Raises Forbidden unless the person has the permission in this tenant or on the platform."""
    if not selectors.may(user, tenant.pk, permission):
        raise Forbidden(_("Only admins of this tenant and platform admins can do this."))


def require_actor(actor: Actor, tenant: Tenant, permission: Permission) -> None:
    """Raises Forbidden for a person without the permission in this tenant or on the platform."""
    user = accounts.person_of(actor)
    if user is not None:
        require(user, tenant, permission)


def require_some(user: User) -> None:
    """Raises Forbidden if the person may not manage the members of any tenant."""
    if not selectors.managed_by(user).exists():
        raise Forbidden(_("Only tenant admins and platform admins can import people."))


def create(*, slug: str, name: str, description: str = "", actor: Actor, now: datetime) -> Tenant:
    """A new tenant without members. Raises Forbidden, Refused if the short name is taken."""
    accounts.require_actor(actor, Permission.MANAGE_TENANTS)
    try:
        with unit_of_work():
            tenant = Tenant.objects.create(slug=slug, name=name, description=description, created_at=now)
            _tell(tenant, events.TenantCreated(name=slug), actor, now)
    except IntegrityError as error:
        message = _("The short name “%(slug)s” is used by another tenant. Choose another one.") % {"slug": slug}
        raise Refused(message, "slug") from error
    return tenant


def change(tenant: Tenant, values: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """Change a tenant's fields. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_TENANTS)
    with unit_of_work():
        changed = changes.edit(tenant, values)
        _tell(tenant, events.TenantChanged(name=tenant.slug, changes=changed), actor, now)


def set_retention(tenant: Tenant, *, log_days: int, history_days: int, actor: Actor, now: datetime) -> None:
    """Set how long the logs and the history of deleted jobs are kept, in days. Raises Forbidden, Invalid."""
    require_actor(actor, tenant, Permission.SET_RETENTION)
    problems = list(_wrong_retention(log_days, history_days))
    if problems:
        raise Invalid(problems)
    with unit_of_work():
        changed = changes.edit(tenant, {"log_days": log_days, "history_days": history_days})
        if changed:
            _tell(tenant, events.TenantChanged(name=tenant.slug, changes=changed), actor, now)


def set_file_limit(tenant: Tenant, files_gib: int | None, *, actor: Actor, now: datetime) -> None:
    """Set from how many GiB of files on nobody can upload more; None: no limit. Raises Forbidden, Invalid."""
    require_actor(actor, tenant, Permission.SET_TENANT_QUOTAS)
    if files_gib is not None and not 0 <= files_gib <= MAX_FILES_GIB:
        raise Invalid(
            [Problem("files_gib", _("The limit must be between 0 and %(most)d GiB.") % {"most": MAX_FILES_GIB})]
        )
    with unit_of_work():
        changed = changes.edit(tenant, {"files_gib": files_gib})
        if changed:
            _tell(tenant, events.TenantChanged(name=tenant.slug, changes=changed), actor, now)


def _wrong_retention(log_days: int, history_days: int) -> Iterator[Problem]:
    facts = {"most": MAX_RETENTION_DAYS}
    if not 0 <= log_days <= MAX_RETENTION_DAYS:
        yield Problem("log_days", _("Log retention must be between 0 and %(most)d days.") % facts)
    if not 1 <= history_days <= MAX_RETENTION_DAYS:
        yield Problem("history_days", _("History retention must be between 1 and %(most)d days.") % facts)
    elif history_days < log_days:
        yield Problem(
            "history_days",
            _("History retention must not be shorter than log retention. Logs are reached through the history."),
        )


def add_member(tenant: Tenant, user: User, role: str, *, actor: Actor, now: datetime) -> Membership:
    """Add a member. Raises Forbidden, Refused if the person is a member already."""
    require_actor(actor, tenant, Permission.MANAGE_MEMBERS)
    try:
        with unit_of_work():
            membership = Membership.objects.create(tenant=tenant, user=user, role=role, since=now)
            _tell(tenant, events.MemberAdded(username=user.username, role=role), actor, now)
    except IntegrityError as error:
        message = _("%(who)s is a member of %(tenant)s already.") % {"who": user, "tenant": tenant}
        raise Refused(message, "user") from error
    return membership


def change_role(tenant: Tenant, user_id: int, role: str, *, actor: Actor, now: datetime) -> None:
    """Change a member's role. Raises Forbidden, NotFound, Refused for the last admin."""
    require_actor(actor, tenant, Permission.MANAGE_MEMBERS)
    with unit_of_work():
        membership = _membership(tenant, user_id)
        if role != TenantRole.ADMIN:
            _keep_one_admin(membership)
        event = events.MemberRoleChanged(username=membership.user.username, old=membership.role, new=role)
        membership.role = role
        membership.save(update_fields=["role"])
        _tell(tenant, event, actor, now)


def remove_member(tenant: Tenant, user_id: int, *, actor: Actor, now: datetime) -> None:
    """Remove a member; their jobs stay. Raises Forbidden, NotFound, Refused for the last admin."""
    require_actor(actor, tenant, Permission.MANAGE_MEMBERS)
    with unit_of_work():
        membership = _membership(tenant, user_id)
        _keep_one_admin(membership)
        membership.delete()
        _tell(tenant, events.MemberRemoved(username=membership.user.username), actor, now)


def _membership(tenant: Tenant, user_id: int) -> Membership:
    """The membership, locked like the tenant: of two admins, only one can go at a time."""
    changes.lock(tenant)
    found = Membership.objects.select_for_update(of=("self",)).filter(tenant=tenant, user_id=user_id)
    membership = found.select_related("user").first()
    if membership is None:
        raise NotFound(_("Unknown member."))
    return membership


def _keep_one_admin(membership: Membership) -> None:
    """Raises Refused if without this member nobody is left who can sign in as an admin of the tenant."""
    admins = Membership.objects.filter(tenant=membership.tenant_id, role=TenantRole.ADMIN, user__is_active=True)
    if membership.role == TenantRole.ADMIN and not admins.exclude(pk=membership.pk).exists():
        raise Refused(_("The tenant has no other active admin. Make another member an admin first."), "role")


def _tell(tenant: Tenant, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"tenant:{tenant.pk}", tenant=tenant.pk, actor=actor, at=now)
