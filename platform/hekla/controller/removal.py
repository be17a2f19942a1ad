"""How what a deleted job leaves behind goes, in order; and how logs and history go when their time is over.

Level-triggered: each look does what the rows say is left to do, a bounded batch of it, so it does not matter at which
step the process before this one died. Every step can be done twice; a job that the backend cannot remove now holds up
no other.

    deleted  ->  its pods have ended  ->  the backend holds nothing of it but logs  ->  cleaned
             ->  (the tenant keeps logs no longer)  ->  the backend holds nothing of it
             ->  (nor history)                      ->  no row and no event tells of it
"""

import logging
from collections.abc import Callable
from datetime import datetime

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
        hold.keep()
        if services.end_pods(hold.cluster_id, hold.epoch, job.pk, now=now) and _done(hold.backend.remove, job):
            services.mark_cleaned(hold.cluster_id, hold.epoch, job.pk, now=now)


def purge(hold: Hold, *, now: datetime) -> bool:
    """Let one batch of logs and one of history go. Returns whether there may be more to do at once."""
    overdue = selectors.with_overdue_logs(hold.cluster_id, now=now, limit=BATCH)
    gone = [job for job in overdue if _done(hold.backend.remove_logs, job)]
    if gone:
        services.mark_logs_purged(hold.cluster_id, hold.epoch, gone, now=now)
    forgotten = selectors.with_overdue_history(hold.cluster_id, now=now, limit=_HISTORY_BATCH)
    if forgotten:
        services.purge_history(hold.cluster_id, hold.epoch, forgotten, now=now)
    return bool(gone or forgotten)


def _done(remove: Callable[[str], None], job: Job) -> bool:
    try:
        remove(job.uid.hex)
    except BackendError as error:
        log.warning("could not remove what is left of %s, will try again: %s", job, error)
        return False
    return True
