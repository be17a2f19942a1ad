"""Why an invitation lets a person in no more, for the pages that they still have open."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.sharing import selectors
from hekla.apps.sharing.models import Guest
from hekla.apps.workbench.models import ToolSession
from hekla.domain.sharing import GuestEnd


def closed_reason(guest: Guest, *, now: datetime) -> str:
    """Why this invitation, once accepted, has no effect now; empty if it has, or was never accepted."""
    if guest.accepted_at is None:
        return ""
    if guest.ended_at is None and guest.expires_at > now:
        return selectors.lost_right(guest, now=now)
    if guest.end_reason == GuestEnd.REVOKED:
        return _("Your invitation was withdrawn.")
    if guest.end_reason == GuestEnd.LEFT:
        return _("You have left.")
    return _("Your invitation has ended.") if guest.end_reason == GuestEnd.CLOSED else _("Your invitation has expired.")


def reason_of_session(session: ToolSession, user: User, *, now: datetime) -> str:
    """The same for the person's last invitation to this session; empty without any."""
    found = Guest.objects.filter(session=session, person=user).select_related(
        *("pod__job__tenant", "inviter", "session__owner", "terminal__owner")
    )
    last = found.order_by("-created_at", "-pk").first()
    return closed_reason(last, now=now) if last is not None else ""
