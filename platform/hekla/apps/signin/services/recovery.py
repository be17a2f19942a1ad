"""Recovery codes: they are created with a person's first second factor, and deleted with the last."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record
from hekla.apps.signin import codes, selectors
from hekla.apps.signin.models import RecoveryCode
from hekla.apps.signin.services.counting import one_at_a_time
from hekla.domain import events
from hekla.domain.errors import NotFound


def renew_codes(user: User, *, now: datetime) -> list[str]:
    """New recovery codes, which replace the old ones. Raises NotFound without a second factor."""
    with one_at_a_time(user):
        require_second_factor(user)
        record(events.RecoveryCodesGenerated(), subject=f"user:{user.pk}", actor=actor_of(user), at=now)
        return _fresh(user)


def first_codes(user: User) -> list[str]:
    """New recovery codes for a first second factor; none if some exist already."""
    return [] if RecoveryCode.objects.filter(user=user).exists() else _fresh(user)


def use_code(user: User, code: str, now: datetime) -> bool:
    """Use a recovery code. Returns False if it is wrong or used."""
    left = RecoveryCode.objects.filter(user=user, used_at=None)
    if not left.filter(digest=codes.digest(code)).update(used_at=now):
        return False
    event = events.RecoveryCodeUsed(left=left.count())
    record(event, subject=f"user:{user.pk}", actor=actor_of(user), at=now)
    return True


def require_second_factor(user: User) -> None:
    """Raises NotFound if the person has no second factor."""
    if not selectors.has_second_factor(user):
        raise NotFound(_("Two-factor authentication is not set up."))


def _fresh(user: User) -> list[str]:
    fresh = codes.new_recovery_codes()
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=codes.digest(code)) for code in fresh)
    return fresh
