"""Frozen pods: measure what their files occupy, and delete the files of released ones.

Level-triggered, like `garbage_collection`: each step is recorded after it was done, and is repeated after a crash.
"""

import logging
from datetime import datetime

from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import FrozenPod
from hekla.apps.usage import folders as job_folders
from hekla.backends.base import BackendError
from hekla.controller.lease_context import LeaseContext
from hekla.controller.observations import key_of

log = logging.getLogger(__name__)
_MOST_MEASURED, _MOST_RELEASED = 4, 20


def look_after(lease: LeaseContext, *, now: datetime) -> None:
    """Do a bounded part of what the rows call for."""
    folders = lease.backend.frozen
    services.release_due(lease.cluster_id, lease.epoch, is_supported=folders is not None, now=now)
    if folders is not None:
        for frozen in selectors.unmeasured(lease.cluster_id, limit=_MOST_MEASURED):
            lease.ensure_leader()
            try:
                size = folders.measure(key_of(frozen.pod))
            except BackendError as error:
                log.warning("cannot measure the files of %s of %s now: %s", frozen.pod, frozen.pod.job, error)
                continue
            services.note_size(lease.cluster_id, lease.epoch, frozen.pk, size, now=now)
    done = list[FrozenPod]()
    for frozen in selectors.to_release(lease.cluster_id, limit=_MOST_RELEASED):
        lease.ensure_leader()
        try:
            if folders is not None:
                folders.release(key_of(frozen.pod))
        except BackendError as error:
            log.warning("cannot delete the files of %s of %s now: %s", frozen.pod, frozen.pod.job, error)
        else:
            done.append(frozen)
    if done:
        services.mark_frozen_cleaned(lease.cluster_id, lease.epoch, [frozen.pk for frozen in done], now=now)
        job_folders.measure_soon({frozen.pod.job_id for frozen in done}, now=now)
