"""Record the faults of jobs, which are found by the cache and by the steps of the controller."""

from collections.abc import Collection
from datetime import datetime

from hekla.apps.jobs import services
from hekla.controller.lease_context import LeaseContext
from hekla.scheduling.job_faults import SPEC, JobFaults


def record_faults(lease: LeaseContext, faults: JobFaults, *, now: datetime) -> Collection[int]:
    """Record new faults as the pending reasons of their jobs. Returns the row ids of these jobs."""
    found = faults.take_new()
    for pk, fault in found.items():
        services.record_fault(lease.cluster_id, lease.epoch, pk, fault.text, is_spec=fault.step == SPEC, now=now)
    return found
