"""Jobs that the controller cannot process."""

from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.decisions import Waiting, write_waiting


def record_fault(cluster_id: int, epoch: int, job_id: int, text: str, *, is_spec: bool, now: datetime) -> None:
    """Set what is wrong as the job's pending reason. `is_spec`: its stored spec is not valid. Raises LeaseLost."""
    reason: dict[str, object] = {
        "cause": "data",
        "action": "",
        "plugin": "",
        "code": "spec_not_valid" if is_spec else "job_fault",
        "need": {},
        "have": {},
        "tasks": 0,
        "nodes": {},
        "ever": True,
        "text": text,
    }
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = Job.objects.select_for_update().filter(pk=job_id, cluster=cluster_id).first()
        if job is not None and not job.is_final and write_waiting(job, Waiting((reason,), text), now):
            job.save(update_fields=["waiting"])
