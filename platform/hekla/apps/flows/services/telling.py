"""Records events about templates and flows."""

from datetime import datetime

from hekla.apps.event_log.services import Actor, record
from hekla.apps.flows.models import Flow, JobTemplate
from hekla.domain import events


def tell(thing: Flow | JobTemplate, event: events.Event, *, actor: Actor, now: datetime) -> None:
    """Record an event about a flow or a template, for followers of it and of its tenant."""
    kind = "flow" if isinstance(thing, Flow) else "template"
    record(event, subject=f"{kind}:{thing.uid}", tenant=thing.tenant_id, actor=actor, at=now)
