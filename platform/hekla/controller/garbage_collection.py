"""How what a deleted job leaves behind goes, in order; and how logs and history go when their time is over.

Level-triggered: each look does what the rows say is left to do, a bounded batch of it, so it does not matter at which
step the process before this one died. Every step can be done twice; a job that the backend cannot remove now holds up
no other.

    deleted  ->  its pods have ended  ->  the backend holds nothing of it but logs  ->  cleaned
             ->  (the tenant keeps logs no longer)  ->  the backend holds nothing of it
             ->  (nor history)                      ->  no row and no event tells of it

What arrives at the backend later, since a request was long on its way or its sender slept, is swept up.
"""

import logging
from datetime import datetime
from typing import Protocol

from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Job
from hekla.backends.base import BackendError
from hekla.controller.lease_context import LeaseContext

log = logging.getLogger(__name__)
BATCH = 200
_HISTORY_BATCH = 50


def collect_garbage(lease: LeaseContext, *, now: datetime) -> None:
    """Delete jobs whose time to live is over; take away what is attached to those that are deleted."""
    services.delete_expired(lease.cluster_id, lease.epoch, now=now)
    for job in selectors.to_clean(lease.cluster_id, limit=BATCH):
        is_over = services.end_pods(lease.cluster_id, lease.epoch, job.pk, now=now)
        if is_over and _done(lease, lease.backend.remove, job):
            services.mark_cleaned(lease.cluster_id, lease.epoch, job.pk, now=now)


def purge_expired(lease: LeaseContext, *, now: datetime) -> bool:
    """Let one batch of logs and one of history go. Returns whether there may be more to do at once."""
    overdue = selectors.with_overdue_logs(lease.cluster_id, now=now, limit=BATCH)
    gone = [job for job in overdue if _done(lease, lease.backend.remove_logs, job)]
    if gone:
        services.mark_logs_purged(lease.cluster_id, lease.epoch, gone, now=now)
    forgotten = selectors.with_overdue_history(lease.cluster_id, now=now, limit=_HISTORY_BATCH)
    if forgotten:
        services.purge_history(lease.cluster_id, lease.epoch, forgotten, now=now)
    return bool(gone or forgotten)


def sweep_leftovers(lease: LeaseContext) -> None:
    """Take away what came to be at the backend after its job was cleaned."""
    there = lease.backend.inventory(fresh=False)
    for job in selectors.gone_among(lease.cluster_id, present=there.present, logged=there.logged):
        _done(lease, lease.backend.remove_logs if job.logs_purged_at else lease.backend.remove, job)


class _Remove(Protocol):
    def __call__(self, job: str, *, tenant: str) -> None: ...


def _done(lease: LeaseContext, remove: _Remove, job: Job) -> bool:
    lease.ensure_leader()
    try:
        remove(job.uid.hex, tenant=job.tenant.slug)
    except BackendError as error:
        log.warning("could not remove what is left of %s, will try again: %s", job, error)
        return False
    return True
