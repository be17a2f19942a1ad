"""Settings of the job list: saved views, columns, and the view that it opens with."""

from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.jobs.models import JobListSettings, SavedView
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, Refused

MOST_VIEWS = 100


def save_view(*, name: str, query: str, tenant: Tenant | None, user: User, now: datetime) -> SavedView:
    """Save a view, for the person or for all members of a tenant. Raises Forbidden, Refused."""
    if tenant is not None:
        tenancy.require(user, tenant, Permission.SHARE_VIEWS)
    if SavedView.objects.filter(owner=user).count() >= MOST_VIEWS:
        raise Refused(_("You have %(most)d views, the maximum. Delete one first.") % {"most": MOST_VIEWS})
    try:
        with unit_of_work():
            view = SavedView.objects.create(name=name, query=query, tenant=tenant, owner=user, created_at=now)
            _tell(events.JobViewSaved(name=name, tenant=tenant.slug if tenant else ""), user, tenant, now)
    except IntegrityError as error:
        raise Refused(_("A view “%s” exists already. Choose another name.") % name, "name") from error
    return view


def delete_view(view: SavedView, *, user: User, now: datetime) -> None:
    """Delete a view: the person's own, or as an admin one that the tenant shares. Raises Forbidden."""
    if view.tenant is not None:
        tenancy.require(user, view.tenant, Permission.SHARE_VIEWS)
    elif view.owner_id != user.pk:
        raise Forbidden(_("Only the owner can delete this view."))
    with unit_of_work():
        _tell(
            events.JobViewDeleted(name=view.name, tenant=view.tenant.slug if view.tenant else ""),
            user,
            view.tenant,
            now,
        )
        view.delete()


def arrange(*, columns: Sequence[str], opens_with: SavedView | None, user: User, now: datetime) -> JobListSettings:
    """Set the columns of the person's list, and the view that it opens with."""
    with unit_of_work():
        values = {"columns": list(columns), "opens_with": opens_with}
        arrangement, _made = JobListSettings.objects.update_or_create(user=user, defaults=values)
        word = opens_with.name if opens_with else ""
        _tell(events.JobListConfigured(columns=tuple(columns), default_view=word), user, None, now)
    return arrangement


def _tell(event: events.Event, user: User, tenant: Tenant | None, now: datetime) -> None:
    record(
        event, subject=f"user:{user.pk}", actor=actor_of(user), at=now, tenant=tenant.pk if tenant is not None else None
    )
