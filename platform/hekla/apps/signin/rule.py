"""The rule that some people must have a second factor.

Every door of the console checks it here: pages and REST with a session, REST with a token, OpenPAI's sign-in, and
websockets. So a token or a session from before the rule opens nothing until its person adds a second factor.
"""

from collections.abc import Collection

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.signin import selectors
from hekla.domain.errors import Forbidden


class SecondFactorMissing(Forbidden):
    """The platform requires a second factor of this person, and they have none."""

    code = "second_factor_missing"


def without_required_factor(people: Collection[int]) -> set[int]:
    """The ids of those people who must have a second factor and have none. Without a rule, it reads nothing."""
    if not settings.SECOND_FACTOR_FOR or not people:
        return set()
    bound = {user.pk for user in User.objects.filter(pk__in=people) if selectors.must_have(user)}
    return bound - selectors.with_second_factor(bound)


def require(user: User) -> None:
    """Raises SecondFactorMissing if this person must have a second factor and has none."""
    if without_required_factor([user.pk]):
        raise SecondFactorMissing(
            _("This platform requires two-factor authentication. Sign in to the console and set it up first.")
        )
