"""How events about jobs are addressed."""

from collections.abc import Sequence
from datetime import datetime

from hekla.apps.event_log.services import Actor, record
from hekla.apps.jobs.models import Job
from hekla.domain import events


def tell(job: Job, event: events.Event, *, actor: Actor, now: datetime, topics: Sequence[str] = ()) -> None:
    """Record an event about a job, for all who follow it, its owner, its queue or its cluster, or these topics."""
    record(
        event,
        subject=f"job:{job.uid}",
        tenant=job.tenant_id,
        topics=[f"queue:{job.queue_id}", f"cluster:{job.cluster_id}", f"owner:{job.owner_id}", *topics],
        actor=actor,
        at=now,
    )
