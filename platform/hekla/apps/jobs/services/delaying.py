"""Bound pods that the cluster does not accept yet."""

from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events


def delay(cluster_id: int, epoch: int, job_id: int, message: str, *, now: datetime) -> None:
    """Log why the cluster does not accept the job's pods now. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = job_rows.locked(job_id)
        tell(job, events.JobDelayed(message=message), actor=CONTROLLER, now=now)
