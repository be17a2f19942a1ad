"""Terminals begin and end, and other people type in them."""

from datetime import datetime
from uuid import UUID

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import selectors
from hekla.apps.sharing.models import OpenTerminal
from hekla.apps.sharing.services.guests import end_guests_of
from hekla.apps.sharing.services.telling import place, tell
from hekla.domain import events
from hekla.domain.errors import Forbidden


def open_terminal(pod_id: int, terminal: UUID, *, user: User, now: datetime) -> OpenTerminal:
    """Record that this person has opened a terminal. One that they had in this pod has ended, perhaps unrecorded.

    Raises NotFound, Forbidden, Refused.
    """
    with unit_of_work():
        job_services.record_terminal(pod_id, terminal, user=user, now=now)
        for former in OpenTerminal.objects.select_related("pod__job", "owner").filter(
            pod_id=pod_id, owner=user, ended_at=None
        ):
            close_terminal(former, now=now)
        return OpenTerminal.objects.create(uid=terminal, pod_id=pod_id, owner=user, opened_at=now)


def close_terminal(terminal: OpenTerminal, *, now: datetime) -> None:
    """Record that a terminal has ended. The invitations to it end with it."""
    with unit_of_work():
        OpenTerminal.objects.filter(pk=terminal.pk, ended_at=None).update(ended_at=now)
        end_guests_of(terminal, actor=PLATFORM, now=now)


def record_guest(terminal: OpenTerminal, *, user: User, now: datetime) -> None:
    """Record that this person types in the terminal of another one. Raises Forbidden without the right."""
    pod = terminal.pod
    if not selectors.may_enter(terminal, user, types=True, now=now):
        raise Forbidden("No invitation to type.")
    with unit_of_work():
        facts = {**place(pod), "terminal": terminal.uid.hex, "owner": terminal.owner.username}
        tell(pod, events.TerminalJoined.model_validate(facts), actor=actor_of(user), now=now)
