"""What every outbox tells about itself: rows with `due_at` and `error` that wait to be sent, and rows given up."""

from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.db.models import Count, Min, Q, QuerySet

RECENT = timedelta(days=1)


class OutboxFacts(TypedDict):
    """`oldest_at`: when the first row that waits was due. `abandoned`: as many rows were given up; `error`: the newest
    one.
    """

    waiting: int
    overdue: int
    oldest_at: datetime | None
    abandoned: int
    error: str


def outbox_facts(waiting: QuerySet[Any], abandoned: QuerySet[Any], now: datetime) -> OutboxFacts:
    """The facts of an outbox with these rows."""
    found = waiting.aggregate(
        waiting=Count("pk"), overdue=Count("pk", filter=Q(due_at__lte=now)), oldest_at=Min("due_at")
    )
    faulty = (waiting | abandoned).exclude(error="").order_by("-pk").values_list("error", flat=True)
    return OutboxFacts(
        waiting=found["waiting"],
        overdue=found["overdue"],
        oldest_at=found["oldest_at"],
        abandoned=abandoned.count(),
        error=faulty.first() or "",
    )
