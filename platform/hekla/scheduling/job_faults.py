"""The jobs of a cluster that cannot be processed: their stored spec is not valid, or a plugin or rule raised an error.

A fault holds its job only: nothing of it is decided, and the others go on. It is retried with exponential back-off, and
when the job changes.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import Error

from hekla.apps.clusters.leases import LeaseLost
from hekla.apps.jobs.facts import describe_fault
from hekla.apps.jobs.models import Job
from hekla.backends.base import BackendError
from hekla.lib.backoff import backoff_delay

T = TypeVar("T")
log = logging.getLogger(__name__)
SPEC = "spec"
"""The step that reads the stored spec."""


@dataclass(frozen=True, slots=True)
class JobFault:
    """What is wrong with a job at this revision. `step`: what failed. `attempts`: how often in a row."""

    step: str
    text: str
    revision: int
    attempts: int
    retry_at: datetime


class JobFaults:
    """The faults of one cluster's jobs, by the row id of the job."""

    def __init__(self) -> None:
        self._held: dict[int, JobFault] = {}
        self._retried: dict[int, JobFault] = {}
        self._new: dict[int, JobFault] = {}

    def of(self, job: Job) -> JobFault | None:
        """The fault that holds the job; None if it has none, or changed since then."""
        fault = self._held.get(job.pk)
        return fault if fault is not None and fault.revision == job.revision else None

    def add(self, job: Job, step: str, text: str, now: datetime) -> JobFault:
        """Hold the job until the next retry."""
        former = self._held.pop(job.pk, None) or self._retried.pop(job.pk, None)
        attempts = former.attempts + 1 if former is not None and former.revision == job.revision else 1
        fault = JobFault(step, text, job.revision, attempts, now + backoff_delay(attempts))
        self._held[job.pk] = self._new[job.pk] = fault
        return fault

    def release_due(self, now: datetime) -> list[int]:
        """Release the jobs that are to be tried again. Returns them."""
        due = [pk for pk, fault in self._held.items() if fault.retry_at <= now]
        self._retried |= {pk: self._held.pop(pk) for pk in due}
        return due

    def forget(self, job_id: int) -> None:
        """Drop a job that is gone."""
        for faults in (self._held, self._retried, self._new):
            faults.pop(job_id, None)

    def take_new(self) -> dict[int, JobFault]:
        """The faults that arose since the last call."""
        new, self._new = self._new, {}
        return new

    def attempt(
        self, job: Job, step: str, action: Callable[[], T], now: datetime, *, raises: tuple[type[Exception], ...] = ()
    ) -> T | None:
        """The result of the action. None if it fails by the fault of the job, or failed and is not to be retried yet.

        Errors of the database, the lease and the backend are raised, because they are no fault of the job; and those
        that the caller handles (`raises`).
        """
        held = self.of(job)
        if held is not None and held.step == step:
            return None
        no_fault_of_the_job: tuple[type[Exception], ...] = (Error, LeaseLost, BackendError, *raises)
        try:
            return action()
        except no_fault_of_the_job:
            raise
        except Exception as error:
            log.exception("job %s: %s failed", job.uid, step, extra={"job": str(job.uid)})
            self.add(job, step, describe_fault(error), now)
            return None
