"""Garbage collection: remove deleted jobs step by step, and purge logs and history after their retention time.

Level-triggered: each call does a bounded batch of the work that the rows show, so a new process continues after a
crash. All steps are idempotent. A job that the backend cannot remove now does not block others.

    deleted  ->  its pods have ended  ->  the backend has only its logs  ->  cleaned
             ->  (log retention of the tenant is over)  ->  the backend has nothing of it
             ->  (history retention is over)            ->  no row and no event of it remains

Objects that arrive at the backend later, from a delayed request or a suspended process, are swept.
"""

import logging
from datetime import datetime
from typing import Protocol

from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Job
from hekla.backends.base import BackendError
from hekla.controller import frozen_pods
from hekla.controller.lease_context import LeaseContext

log = logging.getLogger(__name__)
BATCH = 200
_HISTORY_BATCH = 50


def collect_garbage(lease: LeaseContext, *, now: datetime) -> None:
    """Delete jobs whose time to live is over, and remove from the backend what belongs to deleted jobs."""
    if not selectors.any_garbage(lease.cluster_id, now=now):
        return
    frozen_pods.look_after(lease, now=now)
    services.delete_expired(lease.cluster_id, lease.epoch, now=now)
    for job in selectors.to_clean(lease.cluster_id, limit=BATCH):
        is_over = services.end_pods(lease.cluster_id, lease.epoch, job.pk, now=now)
        if is_over and _done(lease, lease.backend.remove, job):
            services.mark_cleaned(lease.cluster_id, lease.epoch, job.pk, now=now)


def purge_expired(lease: LeaseContext, *, now: datetime) -> bool:
    """Purge one batch of logs and one of history. Returns whether more may be due now."""
    overdue = selectors.with_overdue_logs(lease.cluster_id, now=now, limit=BATCH)
    gone = [job for job in overdue if _done(lease, lease.backend.remove_logs, job)]
    if gone:
        services.mark_logs_purged(lease.cluster_id, lease.epoch, gone, now=now)
    forgotten = selectors.with_overdue_history(lease.cluster_id, now=now, limit=_HISTORY_BATCH)
    if forgotten:
        services.purge_history(lease.cluster_id, lease.epoch, forgotten, now=now)
    return bool(gone or forgotten)


def sweep_leftovers(lease: LeaseContext) -> None:
    """Remove what arrived at the backend after its job was cleaned."""
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
