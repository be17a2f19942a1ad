"""Change the replicas of tasks with autoscaling, by the measured utilization of their cards.

A new size is a change like that of a person: the next round creates or stops pods, and the scheduler places them.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_fault, spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import ScalingStep
from hekla.apps.usage import autoscaling
from hekla.controller.lease_context import LeaseContext
from hekla.domain.errors import Invalid
from hekla.domain.phases import JobPhase

log = logging.getLogger(__name__)
EVERY = timedelta(seconds=15)


def scale_jobs(lease: LeaseContext, jobs: Iterable[Job], *, now: datetime) -> None:
    """Apply what the utilization of the running jobs among these calls for. Raises LeaseLost."""
    for job in jobs:
        if job.phase == JobPhase.RUNNING and _is_scaled(job):
            lease.ensure_leader()
            _scale(lease, job, now)


def _is_scaled(job: Job) -> bool:
    return any(task.autoscaling for task in spec_of(job).tasks) and not job.is_external and not spec_fault(job)


def _scale(lease: LeaseContext, job: Job, now: datetime) -> None:
    """One step of the first task that needs one: the others follow at the job's next revision."""
    for found in autoscaling.of_job(job, now=now):
        best, task = found.recommendation, found.task
        if best.utilization is None or best.replicas == task.replicas:
            continue
        step = ScalingStep(task.name, best.replicas, best.utilization, found.rule.gpu_utilization, job.revision)
        try:
            services.autoscale(lease.cluster_id, lease.epoch, job.pk, step, now=now)
        except Invalid as error:
            log.warning("could not scale %s of %s: %s", task.name, job, error)
        return
