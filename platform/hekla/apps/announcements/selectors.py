"""Queries about announcements. Whoever writes them sees all; others see those for them, once they have begun."""

from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.announcements.models import Announcement, Dismissal
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound

MOST_BANNERS = 3
"""Further ones are on the page of announcements."""


def visible_to(user: User, *, now: datetime) -> QuerySet[Announcement]:
    """The announcements that the person can see, the newest first. Over ones are seen by those who write them.

    Of their tenants, those that the person can see.
    """
    found = Announcement.objects.select_related("author").order_by("-begin_at", "-id")
    if accounts.may(user, Permission.ANNOUNCE):
        return found.prefetch_related("tenants")
    found = found.filter(_in_force(now))
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return found.prefetch_related("tenants")
    own = tenancy.visible_ids(user)
    through = Announcement.tenants.through.objects.filter(announcement=OuterRef("pk"))
    found = found.filter(~Exists(through) | Exists(through.filter(tenant__in=own)))
    return found.prefetch_related(Prefetch("tenants", Tenant.objects.filter(pk__in=own)))


def current(user: User, *, now: datetime) -> list[Announcement]:
    """The announcements in force that the person has not hidden, the newest first, at most `MOST_BANNERS`.

    Those for tenants are shown to their members only, also if the person writes announcements.
    """
    rights = tenancy.rights(user)
    mine = [tenant.pk for tenant in rights.tenants]
    through = Announcement.tenants.through.objects.filter(announcement=OuterRef("pk"))
    hidden = Dismissal.objects.filter(announcement=OuterRef("pk"), user=user)
    found = Announcement.objects.filter(_in_force(now), ~Exists(hidden))
    found = found.filter(~Exists(through) | Exists(through.filter(tenant__in=mine)))
    return list(found.order_by("-begin_at", "-id")[:MOST_BANNERS])


def get(uid: UUID, user: User, *, now: datetime) -> Announcement:
    """One announcement. Raises NotFound."""
    one = visible_to(user, now=now).filter(uid=uid).first()
    if one is None:
        raise NotFound(_("Unknown announcement."))
    return one


def _in_force(now: datetime) -> Q:
    return Q(begin_at__lte=now) & (Q(end_at=None) | Q(end_at__gt=now))
