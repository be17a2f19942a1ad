"""The people who have a session open, for its page and for those in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.sharing import selectors
from hekla.apps.sharing.roles import LABELS
from hekla.apps.workbench import presence
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.domain.sharing import GuestRole

_HERE = timedelta(seconds=8)
"""Web processes report those with an open request or websocket every two seconds."""


@dataclass(frozen=True, slots=True)
class SessionPresence:
    """A person who uses a session, or did within some minutes. `role`: in words. `is_here`: now."""

    person: User
    role: str
    used_at: datetime
    is_here: bool


def users_of(session: ToolSession, *, now: datetime) -> Sequence[SessionPresence]:
    """Who uses the session: its owner, and guests whose invitation is in force. Those who are here come first.

    The caller has checked that the person may act on the job, or is one of these guests.
    """
    if session.state is SessionState.ENDED:
        return []
    roles = {session.owner_id: (session.owner, _("opened it"))}
    for guest in selectors.guests_of(session, now=now):
        if guest.accepted_at is not None:
            roles[guest.person_id] = (guest.person, str(LABELS[GuestRole(guest.role)]))
    used = presence.last_used(session.pk, roles)
    found = [SessionPresence(*roles[person], at, now - at < _HERE) for person, at in used.items()]
    return sorted(found, key=lambda one: (not one.is_here, one.person.username))
