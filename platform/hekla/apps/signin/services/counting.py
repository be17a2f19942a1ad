"""Counts wrong attempts by account, on a locked row: a cache that is down must not remove the limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import time_format
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.signin.models import SecondFactorAttempts
from hekla.domain.errors import Refused

MOST_WRONG = 10
WRONG_WITHIN = timedelta(minutes=15)


@contextmanager
def one_at_a_time(user: User) -> Iterator[SecondFactorAttempts]:
    """One unit of work, in which no other request changes or verifies this person's factors."""
    with unit_of_work():
        yield SecondFactorAttempts.objects.select_for_update().get_or_create(user=user)[0]


@contextmanager
def counted(user: User, now: datetime, *, field: str) -> Iterator[None]:
    """One attempt to verify a factor: a Refused inside is counted and raised; after too many, nothing is tried.

    Code that raises Refused must not have written anything: the count is committed, and every write with it. `field`
    gets the message about too many attempts.
    """
    refusal: Refused | None = None
    with one_at_a_time(user) as tries:
        _forget_old(tries, now)
        if tries.wrong >= MOST_WRONG:
            raise _too_many(tries, now, field)
        try:
            yield
        except Refused as wrong:
            tries.wrong, tries.wrong_since = tries.wrong + 1, tries.wrong_since or now
            refusal = _too_many(tries, now, field) if tries.wrong >= MOST_WRONG else wrong
        else:
            tries.wrong, tries.wrong_since = 0, None
        tries.save(update_fields=["wrong", "wrong_since"])
    if refusal is not None:
        raise refusal


def _forget_old(tries: SecondFactorAttempts, now: datetime) -> None:
    if tries.wrong_since is not None and now - tries.wrong_since >= WRONG_WITHIN:
        tries.wrong, tries.wrong_since = 0, None


def _too_many(tries: SecondFactorAttempts, now: datetime, field: str) -> Refused:
    until = timezone.localtime((tries.wrong_since or now) + WRONG_WITHIN)
    sentence = _("Too many wrong attempts. Try again at %(time)s, or ask a platform admin.")
    return Refused(sentence % {"time": time_format(until, "H:i e")}, field)
