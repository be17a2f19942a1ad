"""Changes to departments: their names, their heads, and their tenants."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.tenancy.models import Department, DepartmentHead, Tenant
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused
from hekla.domain.events import FieldChange


def create(
    *,
    slug: str,
    name: str,
    description: str = "",
    heads: Collection[User] = (),
    tenants: Collection[Tenant] = (),
    actor: Actor,
    now: datetime,
) -> Department:
    """A new department. Raises Forbidden, Refused (short name taken), Invalid for tenants of another department."""
    accounts.require_actor(actor, Permission.MANAGE_TENANTS)
    try:
        with unit_of_work():
            department = Department.objects.create(slug=slug, name=name, description=description, created_at=now)
            record(events.DepartmentCreated(name=slug), subject=_subject(department), actor=actor, at=now)
            change(department, {}, heads=heads, tenants=tenants, actor=actor, now=now)
    except IntegrityError as error:
        message = _("The short name “%(slug)s” is used by another department. Choose another one.") % {"slug": slug}
        raise Refused(message, "slug") from error
    return department


def change(
    department: Department,
    values: Mapping[str, Any],
    *,
    heads: Collection[User] | None = None,
    tenants: Collection[Tenant] | None = None,
    actor: Actor,
    now: datetime,
) -> None:
    """Change a department's fields, and replace its heads and its tenants if given. Raises Forbidden, Invalid."""
    accounts.require_actor(actor, Permission.MANAGE_TENANTS)
    with unit_of_work():
        changed = changes.edit(department, values)
        if heads is not None:
            changed |= _set_heads(department, heads, now)
        if tenants is not None:
            changed |= _set_tenants(department, tenants, actor, now)
        if changed:
            event = events.DepartmentChanged(name=department.slug, changes=changed)
            record(event, subject=_subject(department), actor=actor, at=now)


def _set_heads(department: Department, heads: Collection[User], now: datetime) -> dict[str, FieldChange]:
    before = User.objects.filter(headed_departments__department=department)
    difference = _difference("heads", (user.username for user in before), (user.username for user in heads))
    DepartmentHead.objects.filter(department=department).exclude(user__in=heads).delete()
    rows = [DepartmentHead(department=department, user=user, since=now) for user in heads]
    DepartmentHead.objects.bulk_create(rows, ignore_conflicts=True)
    return difference


def _set_tenants(
    department: Department, tenants: Collection[Tenant], actor: Actor, now: datetime
) -> dict[str, FieldChange]:
    wanted = list(Tenant.objects.select_for_update().filter(pk__in=[tenant.pk for tenant in tenants]))
    elsewhere = [tenant.slug for tenant in wanted if tenant.department_id not in {None, department.pk}]
    if elsewhere:
        message = _("These tenants belong to another department. Remove them there first: %(tenants)s")
        raise Invalid([Problem("tenants", message % {"tenants": _(", ").join(elsewhere)})])
    before = list(Tenant.objects.select_for_update().filter(department=department))
    _move((tenant for tenant in before if tenant not in wanted), None, actor, now)
    _move((tenant for tenant in wanted if tenant not in before), department, actor, now)
    return _difference("tenants", (tenant.slug for tenant in before), (tenant.slug for tenant in wanted))


def _move(tenants: Iterable[Tenant], department: Department | None, actor: Actor, now: datetime) -> None:
    """Set the department of these tenants, and log it in the history of each."""
    for tenant in tenants:
        old = tenant.department.slug if tenant.department else ""
        change = FieldChange(old=old, new=department.slug if department else "")
        tenant.department = department
        tenant.save(update_fields=["department"])
        event = events.TenantChanged(name=tenant.slug, changes={"department": change})
        record(event, subject=f"tenant:{tenant.pk}", tenant=tenant.pk, actor=actor, at=now)


def _difference(name: str, before: Iterable[str], after: Iterable[str]) -> dict[str, FieldChange]:
    old, new = sorted(before), sorted(after)
    return {name: FieldChange(old=list(old), new=list(new))} if old != new else {}


def _subject(department: Department) -> str:
    return f"department:{department.pk}"
