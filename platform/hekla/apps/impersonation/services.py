"""Starts and ends impersonations."""

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused

LONGEST = timedelta(hours=1)


def begin(user: User, *, reason: str, by: User, now: datetime) -> ImpersonationSession:
    """Start to impersonate a person, for one hour at most. Raises Forbidden, Refused, Invalid."""
    accounts.require(by, Permission.ACT_FOR_PEOPLE)
    if not selectors.may_act_for(by, user):
        raise Refused(_("Platform admins and people who may not sign in cannot be impersonated."))
    if not reason.strip():
        raise Invalid([Problem("reason", _("Enter a reason."))])
    with unit_of_work():
        acting = ImpersonationSession.objects.create(
            admin=by, person=user, reason=reason.strip()[:200], began_at=now, until=now + LONGEST
        )
        event = events.ImpersonationStarted(username=user.username, reason=acting.reason, until=acting.until)
        record(event, subject=f"user:{user.pk}", actor=actor_of(by), at=now)
    return acting


def end(acting_id: int, *, by: User, now: datetime) -> User | None:
    """End an impersonation. Returns the impersonated person; None if it has ended already."""
    with unit_of_work():
        found = ImpersonationSession.objects.select_for_update(of=("self",)).select_related("admin", "person")
        acting = found.filter(pk=acting_id, admin=by, ended_at=None).first()
        if acting is None:
            return None
        _end(acting, min(now, acting.until))
        return acting.person


def end_overdue(*, now: datetime) -> int:
    """End all expired impersonations, also of browsers that send no more requests. Returns their number."""
    with unit_of_work():
        found = ImpersonationSession.objects.select_for_update(of=("self",), skip_locked=True).select_related(
            "admin", "person"
        )
        overdue = list(found.filter(ended_at=None, until__lte=now))
        for acting in overdue:
            _end(acting, acting.until)
    return len(overdue)


def _end(acting: ImpersonationSession, at: datetime) -> None:
    acting.ended_at = at
    acting.save(update_fields=["ended_at"])
    event = events.ImpersonationEnded(username=acting.person.username)
    record(event, subject=f"user:{acting.person_id}", actor=actor_of(acting.admin), at=at)
