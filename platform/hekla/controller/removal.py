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
from hekla.controller.observations import Hold

log = logging.getLogger(__name__)
BATCH = 200
_HISTORY_BATCH = 50


def clean(hold: Hold, *, now: datetime) -> None:
    """Delete jobs whose time to live is over; take away what is attached to those that are deleted."""
    services.delete_expired(hold.cluster_id, hold.epoch, now=now)
    for job in selectors.to_clean(hold.cluster_id, limit=BATCH):
        is_over = services.end_pods(hold.cluster_id, hold.epoch, job.pk, now=now)
        if is_over and _done(hold, hold.backend.remove, job):
            services.mark_cleaned(hold.cluster_id, hold.epoch, job.pk, now=now)


def purge(hold: Hold, *, now: datetime) -> bool:
    """Let one batch of logs and one of history go. Returns whether there may be more to do at once."""
    overdue = selectors.with_overdue_logs(hold.cluster_id, now=now, limit=BATCH)
    gone = [job for job in overdue if _done(hold, hold.backend.remove_logs, job)]
    if gone:
        services.mark_logs_purged(hold.cluster_id, hold.epoch, gone, now=now)
    forgotten = selectors.with_overdue_history(hold.cluster_id, now=now, limit=_HISTORY_BATCH)
    if forgotten:
        services.purge_history(hold.cluster_id, hold.epoch, forgotten, now=now)
    return bool(gone or forgotten)


def sweep(hold: Hold) -> None:
    """Take away what came to be at the backend after its job was cleaned."""
    there = hold.backend.inventory(fresh=False)
    for job in selectors.gone_among(hold.cluster_id, kept=there.kept, logged=there.logged):
        _done(hold, hold.backend.remove_logs if job.logs_purged_at else hold.backend.remove, job)


class _Remove(Protocol):
    def __call__(self, job: str, *, tenant: str) -> None: ...


def _done(hold: Hold, remove: _Remove, job: Job) -> bool:
    hold.require()
    try:
        remove(job.uid.hex, tenant=job.tenant.slug)
    except BackendError as error:
        log.warning("could not remove what is left of %s, will try again: %s", job, error)
        return False
    return True
