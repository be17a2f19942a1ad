"""Queries for impersonations."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.domain.errors import NotFound

KEY = "impersonation"
"""The session's key for the id of its impersonation."""


def in_force(impersonation_id: int, admin: User, *, now: datetime) -> ImpersonationSession | None:
    """The admin's impersonation with this id; None if it has ended or is no longer allowed."""
    found = ImpersonationSession.objects.filter(pk=impersonation_id, admin=admin, ended_at=None, until__gt=now)
    impersonation = found.select_related("admin", "person").first()
    return impersonation if impersonation and accounts.may_act_for(admin, impersonation.person) else None


def present(user: User, impersonation_id: int | None, *, now: datetime) -> User:
    """The person as whom a session acts: the impersonated person, or the user. Raises NotFound if it has ended."""
    if impersonation_id is None:
        return user
    impersonation = in_force(impersonation_id, user, now=now)
    if impersonation is None:
        raise NotFound(_("You are no longer acting for another person."))
    return impersonation.person


def visible_person(person: int, impersonation_id: int | None, *, now: datetime) -> int | None:
    """The id of the person as whom a session acts; None if its impersonation has ended."""
    if impersonation_id is None:
        return person
    try:
        return present(accounts.active(person), impersonation_id, now=now).pk
    except NotFound:
        return None


def end_work() -> list[QuerySet[Any, Any]]:
    """Impersonations that have expired (see `due_work`)."""
    return [ImpersonationSession.objects.filter(ended_at=None, until__lte=due_work.present())]
