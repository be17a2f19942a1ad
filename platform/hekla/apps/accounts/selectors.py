"""Queries for people and their tokens."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.roles import BY_PLATFORM_ROLE, Permission, PlatformRole
from hekla.domain.errors import NotFound


def may(user: User, permission: Permission) -> bool:
    """Whether the person's platform role has the permission (`tenancy` checks tenant roles)."""
    return user.is_active and permission in BY_PLATFORM_ROLE.get(user.platform_role, frozenset())


def may_act_for(admin: User, user: User) -> bool:
    """Whether `admin` may impersonate `user`. Excludes people who may impersonate others, and so also themselves:
    impersonation must not lend an admin's permissions.
    """
    is_admin = may(admin, Permission.ACT_FOR_PEOPLE) and user.is_active
    return is_admin and not may(user, Permission.ACT_FOR_PEOPLE)


def everybody() -> QuerySet[User]:
    """All people, by name."""
    return User.objects.order_by("username")


def by_username(username: str) -> User | None:
    """The person with this user name, or None."""
    return User.objects.filter(username=username).first()


def first_admin(username: str) -> User | None:
    """The person with this user name; if there is none, an admin of the platform, or None."""
    return by_username(username) or everybody().filter(platform_role=PlatformRole.ADMIN).first()


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """The person's tokens that are not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created_at")


def tokens_in_force(ids: Collection[int], *, now: datetime) -> set[int]:
    """Those of these tokens that are neither revoked nor expired. Without ids, it reads nothing."""
    found = ApiToken.objects.filter(pk__in=ids, revoked_at=None, expires_at__gt=now)
    return set(found.values_list("pk", flat=True)) if ids else set()


def nobody_yet() -> bool:
    """Whether the platform has no people yet."""
    return not User.objects.exists()


def active(user_id: int) -> User:
    """The person as stored now. Raises NotFound if unknown or inactive."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None:
        raise NotFound(_("Unknown person."))
    return user
