"""Changes to announcements. Each is one unit of work."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.announcements import selectors
from hekla.apps.announcements.models import Announcement, Dismissal
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused

MOST = 100


def announce(*, values: dict[str, Any], tenants: Iterable[Tenant] = (), user: User, now: datetime) -> Announcement:
    """A new announcement. `values`: its texts, level and times; without a begin it is in force now.

    Raises Forbidden, Invalid; Refused if there are too many.
    """
    require(user, Permission.ANNOUNCE)
    begin, end = values.get("begin_at") or now, values.get("end_at")
    if end is not None and end <= max(begin, now):
        raise Invalid([Problem("end_at", _("Choose a time after its begin, in the future."))])
    with unit_of_work():
        if Announcement.objects.count() >= MOST:
            raise Refused(_("There are too many announcements. Delete one first."))
        made = Announcement.objects.create(**{**values, "begin_at": begin}, author=user, created_at=now)
        made.tenants.set(tenants)
        _tell(events.AnnouncementCreated(name=str(made), level=made.level), made, user, now)
    return made


def withdraw(one: Announcement, *, user: User, now: datetime) -> None:
    """Delete an announcement. Raises Forbidden, NotFound."""
    require(user, Permission.ANNOUNCE)
    with unit_of_work():
        changes.lock(one)
        _tell(events.AnnouncementDeleted(name=str(one)), one, user, now)
        one.delete()


def dismiss(one: Announcement, *, user: User, now: datetime) -> None:
    """Hide an announcement from this person. Raises NotFound if it is not for them."""
    selectors.get(one.uid, user, now=now)
    with unit_of_work():
        Dismissal.objects.get_or_create(announcement=one, user=user)


def _tell(event: events.Event, one: Announcement, user: User, now: datetime) -> None:
    record(event, subject=f"announcement:{one.pk}", actor=actor_of(user), at=now)
