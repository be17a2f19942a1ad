"""The lease of one cluster, and the identity under which this process holds it."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hekla.apps.clusters import leases
from hekla.apps.jobs import services
from hekla.apps.jobs.services.observations import Sighting
from hekla.backends.base import Backend, BackendError, PodRunner
from hekla.controller.state import ReconcilerState

_LEADER_FOR_SECONDS = 0.5
"""A lease renewed within this time is not renewed again: a tenth of the time for which no other process can take it."""


def identity() -> str:
    """The name under which this process holds leases."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True)
class LeaseContext:
    """A cluster under our lease: the epoch for every write, its backend, and the state of this process for it."""

    cluster_id: int
    epoch: int
    backend: Backend
    state: ReconcilerState

    @property
    def runner(self) -> PodRunner:
        """Starts and stops single pods. Raises BackendError if the cluster's own scheduler does it."""
        runner = self.backend.runner
        if runner is None:
            raise BackendError("The cluster's own scheduler starts and stops its pods")
        return runner

    def ensure_leader(self) -> None:
        """Renew the lease, right before a request to the backend. Raises LeaseLost.

        A suspended process may have lost the lease, and its copy of the rows is then outdated.
        """
        requested_at = time.monotonic()
        if requested_at - self.state.led_at > _LEADER_FOR_SECONDS:
            leases.renew(self.cluster_id, self.epoch)
            self.state.led_at = requested_at

    def note_preparation(self, messages: Mapping[int, str]) -> None:
        """Record messages about pods that prepare, by their primary keys."""
        self.ensure_leader()
        services.note_preparation(self.cluster_id, self.epoch, messages)

    def observe(self, job: UUID, sightings: Sequence[Sighting], now: datetime) -> bool:
        """Record observations of one job's pods. Returns whether anything changed."""
        self.ensure_leader()
        return services.observe(self.cluster_id, self.epoch, job, sightings, address_of=self.runner.address, now=now)
