"""Rules for the removal of a second factor, and the removal of all of them by an admin."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record
from hekla.apps.signin import selectors
from hekla.apps.signin.models import RecoveryCode, SecondFactor, SecurityKey
from hekla.apps.signin.services.counting import one_at_a_time
from hekla.domain import events
from hekla.domain.errors import NotFound, Refused


def settle(user: User) -> None:
    """Call after removing a factor: deletes recovery codes with the last one. Raises Refused if one is required."""
    if selectors.has_second_factor(user):
        return
    if selectors.must_have(user):
        raise Refused(
            _(
                "This platform requires two-factor authentication, and this is your only second factor. Add "
                "another one first."
            )
        )
    RecoveryCode.objects.filter(user=user).delete()


def reset(user: User, *, by: User, now: datetime) -> None:
    """Remove all second factors of a person who lost them, as a platform admin. Raises NotFound, Forbidden."""
    accounts.require(by, Permission.MANAGE_PEOPLE)
    with one_at_a_time(user):
        factors = (SecondFactor.objects.filter(user=user), SecurityKey.objects.filter(user=user))
        if not sum(found.delete()[0] for found in factors):
            raise NotFound(_("Two-factor authentication is not set up."))
        RecoveryCode.objects.filter(user=user).delete()
        event = events.SecondFactorRemoved(username=user.username)
        record(event, subject=f"user:{user.pk}", actor=actor_of(by), at=now)
