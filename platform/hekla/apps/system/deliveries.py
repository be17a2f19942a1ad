"""What waits to be sent to people and other systems: mails, webhooks, letters of invitation, actions of alert rules."""

from dataclasses import dataclass
from datetime import datetime

from hekla.apps.alerts import selectors as alerts
from hekla.apps.invitations import selectors as invitations
from hekla.apps.notifications import selectors as notifications


@dataclass(frozen=True, slots=True)
class OutboxState:
    """Deliveries of one kind. `overdue`: of those that wait, how many should have been sent already; `oldest_at`: when
    the first of them was due; `abandoned`: those that were given up in the last day; `error`: the newest error.
    """

    kind: str
    waiting: int = 0
    overdue: int = 0
    oldest_at: datetime | None = None
    abandoned: int = 0
    error: str = ""


def outboxes(now: datetime) -> tuple[OutboxState, ...]:
    """One state for each kind, also without deliveries."""
    counted = [
        *((f"notification_{channel}", facts) for channel, facts in notifications.outbox_counts(now).items()),
        ("invitation", invitations.outbox_counts(now)),
        ("alert_action", alerts.outbox_counts(now)),
    ]
    return tuple(OutboxState(kind, **facts) for kind, facts in counted)
