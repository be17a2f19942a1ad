"""Makes the history of the simulated teams: a week through the services and the controller, in simulated time.

Time jumps to what happens next: a submission, or the start or end of a pod at the simulated backend. There the
controller reconciles once, as it does in real time. Decision 0070 says what runs here and what does not.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import connection

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.demonstrations import mix, workload
from hekla.apps.demonstrations.models import SimulatedWorkload
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import unannounced
from hekla.apps.flows import selectors as flow_selectors
from hekla.apps.flows import services as flows
from hekla.backends.simulated.backend import SimulatedBackend
from hekla.controller.backends import backend_of
from hekla.controller.cluster_controller import ClusterController
from hekla.controller.lease_context import identity
from hekla.domain.errors import Refused
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.lib import clock

POLICY = DEFAULT_POLICY_TEXT.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
"""Of the cluster: the default one, with evictions."""
WEEK = timedelta(days=7)
MOST_CPU_SECONDS, MOST_SECONDS = 14.0, 40.0
"""How long the making of a history takes at most: on a slow machine fewer things happen in it."""
_NOTICED = timedelta(seconds=1)
"""How long after the end of a pod it is noticed: ends within this time are noticed together."""
_LONGEST_STEP = timedelta(hours=6)
_RARELY = timedelta(hours=12)
_INSTANT = timedelta(microseconds=1)
_HEAD_START = 0.1
"""The first things take longer."""


class SimulatedHistory:
    """The history of a workload. `tell`: called with the part that is made so far, from 0 to 1."""

    def __init__(self, of: SimulatedWorkload, tell: Callable[[float], None]) -> None:
        self._of, self._tell = of, tell
        self._now = self._acted_at = workload.made_until(of)
        self._cpu, self._began = time.process_time(), time.monotonic()
        self._cluster = clusters.by_id(of.cluster_id)
        backend = backend_of(self._cluster)
        if not isinstance(backend, SimulatedBackend):
            raise Refused("The cluster of the workload is not simulated.")
        self._backend = backend
        self._controller = ClusterController(of.cluster_id)
        for timer in (self._controller.reading_nodes, self._controller.sweeping, self._controller.purging):
            timer.every = _RARELY  # nothing else acts on this cluster: its nodes do not change, nothing is left over

    def make(self) -> None:
        """Make it until the present, and begin the steady work there. Another process can take the lease then."""
        until = clock.now()
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO off")  # an interrupted history is continued
        known = mix.moments(self._of.since, until)
        begin = self._now + mix.BEFORE
        count = sum(moment.at < until for moment in known)
        parts = [number / count for number in range(count)]
        with clock.simulated(lambda: self._now), unannounced():
            for number, part in enumerate(parts):
                self._tell(part)
                if known[number].at > begin and self._spent() <= max(part, _HEAD_START):
                    self._submit(number, known)
            self._pass(until)
            self._act()
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")
        leases.release(identity())
        workload.end_history(self._of, now=until)

    def _spent(self) -> float:
        """The part of the time for the making that is over."""
        cpu, wall = time.process_time() - self._cpu, time.monotonic() - self._began
        return max(cpu / MOST_CPU_SECONDS, wall / MOST_SECONDS)

    def _submit(self, number: int, known: list[mix.BurstTime]) -> None:
        for at, arrival in mix.burst(number, known):
            self._pass(at)
            workload.submit(arrival, now=at)
        self._pass(known[number].at)
        self._act()

    def _pass(self, until: datetime) -> None:
        """Let the time pass, and act whenever something has happened."""
        while (at := self._next()) < until:
            self._now = at
            self._act()
        self._now = until

    def _next(self) -> datetime:
        """The next time at which the controller has to look: a pod starts, or has ended."""
        last = self._acted_at.timestamp()
        looks = [
            _instant(plan.runs_at) if plan.runs_at > last else _instant(plan.ends_at) + _NOTICED
            for plan in self._backend.plans_ending_after(last)
        ]
        return max(min([*looks, self._now + _LONGEST_STEP]), self._now + _INSTANT)

    def _act(self) -> None:
        """What happens at this time in the running platform: the controller reconciles, and flows advance."""
        self._acted_at = self._now
        self._controller.reconcile(self._cluster)
        if flow_selectors.any_in_progress():
            before = event_log.last_number()
            flows.advance_all(now=self._now)
            if event_log.last_number() > before:
                self._controller.reconcile(self._cluster)


def _instant(seconds: float) -> datetime:
    """The first instant at which these seconds of the epoch are over."""
    return datetime.fromtimestamp(seconds, tz=UTC) + _INSTANT
