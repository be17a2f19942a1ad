"""Queries about second factors."""

from collections.abc import Collection

from django.conf import settings
from django.db.models import QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.selectors import may
from hekla.apps.signin.models import RecoveryCode, SecondFactor, SecurityKey


def factor_of(user: User) -> SecondFactor | None:
    """The person's app, even if it is not confirmed yet, or None."""
    return SecondFactor.objects.filter(user=user).first()


def keys_of(user: User) -> QuerySet[SecurityKey]:
    """The person's security keys and passkeys, oldest first."""
    return SecurityKey.objects.filter(user=user).order_by("pk")


def has_second_factor(user: User) -> bool:
    """Whether this person has a confirmed second factor, and must use it to sign in."""
    return bool(with_second_factor([user.pk]))


def with_second_factor(people: Collection[int]) -> set[int]:
    """The ids of those people who have a confirmed second factor."""
    apps = SecondFactor.objects.filter(user__in=people).exclude(confirmed_at=None).values_list("user", flat=True)
    return set(apps) | set(SecurityKey.objects.filter(user__in=people).values_list("user", flat=True))


def codes_left(user: User) -> int:
    """The number of unused recovery codes."""
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def must_have(user: User) -> bool:
    """Whether the platform requires this person to have a second factor."""
    rule = settings.SECOND_FACTOR_FOR
    return rule == "everybody" or (rule == "admins" and may(user, Permission.MANAGE_PEOPLE))
