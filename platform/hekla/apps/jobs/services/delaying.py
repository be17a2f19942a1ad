"""Pods that have a place and are not taken there yet."""

from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events


def delay(cluster_id: int, epoch: int, job_id: int, message: str, *, now: datetime) -> None:
    """The job's log says why its pods are not taken now. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = Job.objects.select_for_update().get(pk=job_id)
        tell(job, events.JobDelayed(message=message), actor=CONTROLLER, now=now)
