"""Changes to priority classes. Submitted jobs keep their priority."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.priorities.models import PriorityClass
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Refused


def create(
    *, name: str, values: Mapping[str, Any], tenants: Iterable[Tenant] = (), actor: Actor, now: datetime
) -> PriorityClass:
    """A new class. Raises Forbidden, Refused if the name is taken."""
    accounts.require_actor(actor, Permission.MANAGE_PRIORITY_CLASSES)
    try:
        with unit_of_work():
            _make_way(values)
            made = PriorityClass.objects.create(name=name, created_at=now, **values)
            made.tenants.set(tenants)
            _tell(made, events.PriorityClassCreated(name=name, value=made.value), actor, now)
    except IntegrityError as error:
        raise Refused(_("A priority class “%s” exists already. Choose another name.") % name, "name") from error
    return made


def change(
    one: PriorityClass,
    values: Mapping[str, Any],
    *,
    tenants: Iterable[Tenant] | None = None,
    actor: Actor,
    now: datetime,
) -> None:
    """Change a class, and its tenants if given. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_PRIORITY_CLASSES)
    with unit_of_work():
        changes.lock(one)
        _make_way(values, one)
        changed = changes.apply(one, values)
        one.save(update_fields=list(changed))
        if tenants is not None:
            old, new = _names(one.tenants.all()), _names(tenants)
            one.tenants.set(tenants)
            changed |= {"tenants": events.FieldChange(old=old, new=new)} if old != new else {}
        _tell(one, events.PriorityClassChanged(name=one.name, changes=changed), actor, now)


def delete(one: PriorityClass, *, actor: Actor, now: datetime) -> None:
    """Delete a class; jobs that were submitted with it keep their priority. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_PRIORITY_CLASSES)
    with unit_of_work():
        changes.lock(one)
        _tell(one, events.PriorityClassDeleted(name=one.name), actor, now)
        one.delete()


def _make_way(values: Mapping[str, Any], one: PriorityClass | None = None) -> None:
    """If the class becomes the default, the other default is no longer one: there is only one."""
    if values.get("is_default"):
        others = PriorityClass.objects.exclude(pk=one.pk) if one else PriorityClass.objects.all()
        others.filter(is_default=True).update(is_default=False)


def _names(tenants: Iterable[Tenant]) -> list[str]:
    return sorted(tenant.slug for tenant in tenants)


def _tell(one: PriorityClass, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"priority_class:{one.pk}", actor=actor, at=now)
