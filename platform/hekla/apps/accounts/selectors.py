"""Questions about people."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.roles import BY_PLATFORM_ROLE, Permission
from hekla.domain.errors import NotFound


def may(user: User, permission: Permission) -> bool:
    """Whether the person's platform role allows it (tenant roles are asked in `tenancy`)."""
    return user.is_active and permission in BY_PLATFORM_ROLE.get(user.platform_role, frozenset())


def may_act_for(admin: User, user: User) -> bool:
    """Nobody acts for whoever may act for others, themselves among them: that would lend one's rights to another."""
    is_admin = may(admin, Permission.ACT_FOR_PEOPLE) and user.is_active
    return is_admin and not may(user, Permission.ACT_FOR_PEOPLE)


def everybody() -> QuerySet[User]:
    """All people, by name."""
    return User.objects.order_by("username")


def by_username(username: str) -> User | None:
    """The person of that name."""
    return User.objects.filter(username=username).first()


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """The person's keys that were not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created_at")


def nobody_yet() -> bool:
    """Whether this is a platform without people."""
    return not User.objects.exists()


def active(user_id: int) -> User:
    """The person as they are now. Raises NotFound when they may not sign in any more."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None:
        raise NotFound(_("Unknown person."))
    return user
