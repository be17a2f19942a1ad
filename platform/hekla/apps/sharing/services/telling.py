"""Events about shared terminals and sessions. Their subject is the job."""

from datetime import datetime

from hekla.apps.event_log.services import Actor, record
from hekla.apps.jobs.models import Pod
from hekla.domain import events


def place(pod: Pod) -> dict[str, str | int]:
    """The pod, as in its events."""
    return {"task": pod.task, "index": pod.index, "attempt": pod.attempt}


def tell(pod: Pod, event: events.Event, *, actor: Actor, now: datetime) -> None:
    """Record an event about a pod."""
    job = pod.job
    record(event, subject=f"job:{job.uid}", tenant=job.tenant_id, topics=[f"owner:{job.owner_id}"], actor=actor, at=now)
