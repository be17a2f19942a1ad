"""Leadership of one cluster, and who this process is when it leads."""

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hekla.apps.clusters import leases
from hekla.apps.jobs import services
from hekla.apps.jobs.services.observations import Sighting
from hekla.backends.base import Backend, BackendError, PodRunner
from hekla.controller.state import ReconcilerState
from hekla.lib import clock

_LEADER_FOR_SECONDS = 0.5
"""So lately renewed, the lease is not renewed again: a tenth of the time for which nobody else can take it."""


def identity() -> str:
    """The name under which this process holds leases."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True)
class LeaseContext:
    """A cluster under our lease: the epoch that every write names, its backend, and what we remember of it."""

    cluster_id: int
    epoch: int
    backend: Backend
    state: ReconcilerState

    @property
    def runner(self) -> PodRunner:
        """Starts and stops single pods. Raises BackendError where the cluster's own scheduler does."""
        runner = self.backend.runner
        if runner is None:
            raise BackendError("The cluster's own scheduler starts and stops its pods")
        return runner

    def ensure_leader(self) -> None:
        """Renew the lease, right before a request to the backend. Raises LeaseLost.

        A reconciliation that slept may have lost it: what it read is then no longer what the rows say.
        """
        requested_at = time.monotonic()
        if requested_at - self.state.led_at > _LEADER_FOR_SECONDS:
            leases.renew(self.cluster_id, self.epoch, now=clock.now())
            self.state.led_at = requested_at

    def observe(self, job: UUID, sightings: Sequence[Sighting], now: datetime) -> bool:
        """Record what was observed of one job's pods."""
        self.ensure_leader()
        return services.observe(self.cluster_id, self.epoch, job, sightings, address_of=self.runner.address, now=now)
