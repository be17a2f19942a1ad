"""Queries for impersonations."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.domain.errors import NotFound

KEY = "acting"
"""The session's key for the id of its impersonation."""


def in_force(acting_id: int, admin: User, *, now: datetime) -> ImpersonationSession | None:
    """The admin's impersonation with this id; None if it has ended or is no longer allowed."""
    found = ImpersonationSession.objects.filter(pk=acting_id, admin=admin, ended_at=None, until__gt=now)
    acting = found.select_related("admin", "person").first()
    return acting if acting and accounts.may_act_for(admin, acting.person) else None


def present(user: User, acting_id: int | None, *, now: datetime) -> User:
    """The person as whom a session acts: the impersonated person, or the user. Raises NotFound if it has ended."""
    if acting_id is None:
        return user
    acting = in_force(acting_id, user, now=now)
    if acting is None:
        raise NotFound(_("You are no longer acting for another person."))
    return acting.person


def visible_person(person: int, acting_id: int | None, *, now: datetime) -> int | None:
    """The id of the person as whom a session acts; None if its impersonation has ended."""
    if acting_id is None:
        return person
    try:
        return present(accounts.active(person), acting_id, now=now).pk
    except NotFound:
        return None
