"""What a rule does is done by its owner, with its name beside: rights are checked as the owner's, whenever it acts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from hekla.apps.accounts.services import actor_of
from hekla.apps.alerts.models import AlertRule
from hekla.apps.event_log.services import record, within_session
from hekla.domain import events


@contextmanager
def acting_owner(rule: AlertRule) -> Iterator[None]:
    """Within this block, events of the rule's owner name the rule, too."""
    with within_session(lambda: f"alert rule {rule.name}"):
        yield


def record_of(rule: AlertRule, event: events.Event, now: datetime) -> None:
    """Record an event about the rule, by its owner."""
    subject = f"alert-rule:{rule.uid}"
    record(event, subject=subject, tenant=rule.tenant_id, topics=["alerts"], actor=actor_of(rule.owner), at=now)
