"""Purges what a tenant no longer keeps: first the logs of deleted jobs, then their rows and their history.

One batch is one unit of work with one event, so a large purge never locks the event log for long.
"""

from collections.abc import Sequence
from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, purge, record, unit_of_work
from hekla.apps.jobs.models import Job
from hekla.domain import events


def mark_logs_purged(cluster_id: int, epoch: int, jobs: Sequence[Job], *, now: datetime) -> None:
    """Record that the logs of these jobs of one tenant are deleted in the backend. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        count = Job.objects.filter(pk__in=[job.pk for job in jobs], logs_purged_at=None).update(logs_purged_at=now)
        if count:
            _tell(jobs[0].tenant_id, events.LogsPurged(jobs=count), now)


def purge_history(cluster_id: int, epoch: int, jobs: Sequence[Job], *, now: datetime) -> None:
    """Delete these jobs of one tenant, and all their events. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        rows = Job.objects.filter(pk__in=[job.pk for job in jobs]).exclude(logs_purged_at=None)
        subjects = [f"job:{uid}" for uid in rows.select_for_update().values_list("uid", flat=True)]
        if subjects:
            rows.delete()
            count = purge(subjects)
            _tell(jobs[0].tenant_id, events.HistoryPurged(jobs=len(subjects), events=count), now)


def _tell(tenant_id: int, event: events.Event, now: datetime) -> None:
    record(event, subject=f"tenant:{tenant_id}", tenant=tenant_id, actor=CONTROLLER, at=now)
