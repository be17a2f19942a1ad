"""Records events about jobs."""

from collections.abc import Sequence
from datetime import datetime

from hekla.apps.event_log.services import Actor, record
from hekla.apps.jobs.models import Job
from hekla.domain import events


def tell(job: Job, event: events.Event, *, actor: Actor, now: datetime, topics: Sequence[str] = ()) -> None:
    """Record an event about a job, for subscribers of the job, its owner, its queue, its cluster, or these topics."""
    record(
        event,
        subject=f"job:{job.uid}",
        tenant=job.tenant_id,
        topics=[f"queue:{job.queue_id}", f"cluster:{job.cluster_id}", f"owner:{job.owner_id}", *topics],
        actor=actor,
        at=now,
    )
