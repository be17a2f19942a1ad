"""The controller of one cluster: brings backend and rows together, under the cluster's lease.

`ClusterController.reconcile` is level-triggered: it looks at what is so now. What it remembers only saves work, so a
new process starts without it and comes to the same. Reconciliations of a cluster never overlap: in a process a lock
keeps them apart, between processes the lease does.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event, Lock

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import job_facts
from hekla.apps.jobs.models import Job
from hekla.apps.usage import services as usage
from hekla.backends.base import BackendError
from hekla.controller import (
    decisions,
    delegated,
    displayed_queues,
    disruption_budgets,
    external_pods,
    garbage_collection,
    metrics,
    nodes,
    observations,
    pod_metrics,
    tenancy,
)
from hekla.controller.backends import backend_of
from hekla.controller.lease_context import LeaseContext, identity
from hekla.controller.pods import apply_decisions
from hekla.controller.state import ReconcilerState
from hekla.domain.phases import GangPhase, JobPhase
from hekla.engine.audit import differences
from hekla.engine.decisions import Decisions, ExtensionFault
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.lib import clock
from hekla.scheduling import policies
from hekla.scheduling.cache import CacheEntry, ClusterCache
from hekla.scheduling.snapshot import Snapshot

log = logging.getLogger(__name__)
_MAX_ROUNDS = 8


@dataclass
class Timer:
    """Something that is done every so often, as far as the clock that is passed in says."""

    every: timedelta
    done_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it was never done, or long enough ago."""
        return self.done_at is None or now - self.done_at >= self.every


class ClusterController:
    """Reconciles one cluster. `epoch`: of the lease under which it last did.

    `full_look` and `sweeping` say how often all is looked at although nothing happened, and how often the backend is
    searched for what arrived after its job was cleaned.
    """

    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.epoch: int | None = None
        self._lock = Lock()
        self._idle = Event()
        self._idle.set()
        self._again = False
        self.state, self.cache, self.engine_cache = ReconcilerState(), ClusterCache(), SchedulerCache()
        self._faults: tuple[ExtensionFault, ...] = ()
        self._acted_on = -1
        self._nodes = Timer(timedelta(seconds=10))
        self.full_look = Timer(timedelta(seconds=5))
        self._measuring = Timer(pod_metrics.EVERY)
        self._thinning = Timer(pod_metrics.THIN_EVERY)
        self._purging = Timer(timedelta(minutes=1))
        self.sweeping = Timer(timedelta(minutes=5))

    def reconcile(self, cluster: Cluster) -> None:
        """Reconcile once, and once more for each request that came meanwhile."""
        self._again = True
        while self._again and self._lock.acquire(blocking=False):
            try:
                self._again = False
                self._idle.clear()
                with metrics.RECONCILE_SECONDS.labels(cluster.name).time():
                    self._reconcile(cluster)
            except leases.LeaseLost:
                log.warning("cluster %s: another controller has taken over", cluster)
            except (OperationalError, InterfaceError, InternalError) as error:
                log.warning("cluster %s: no database now: %s", cluster, error)
            except BackendError as error:
                log.warning("cluster %s: its backend cannot answer now: %s", cluster, error)
            finally:
                self._idle.set()
                self._lock.release()

    def request_another(self) -> bool:
        """Have one more after the reconciliation that is under way here. Returns whether one is."""
        self._again = True  # before the question: who reconciles looks at it after letting go
        return self._lock.locked()

    def wait_until_idle(self, seconds: float) -> None:
        """Until the reconciliation that is under way here is over; for so long at most."""
        self._idle.wait(seconds)

    def is_idle(self) -> bool:
        """Whether none is under way here."""
        return not self._lock.locked()

    def close(self) -> None:
        """Drop what is remembered. Nothing is asked of it afterwards."""
        with self._lock:
            self.state, self.cache, self.engine_cache = ReconcilerState(), ClusterCache(), SchedulerCache()

    def _reconcile(self, cluster: Cluster) -> None:
        now = clock.now()
        # 1. Lead. From here on the cluster's row is as it is: whoever moves its pods takes the lease.
        epoch = leases.take(cluster, identity(), now=now)
        if epoch is None:
            return
        cluster = clusters.by_id(cluster.pk)
        if epoch != self.epoch:
            self._start_over(epoch)
        lease = LeaseContext(cluster.pk, epoch, backend_of(cluster), self.state)
        # 2. Observe nodes, and pods that others made.
        external_pods.observe_external_pods(cluster, lease, now=now)
        if self._nodes.is_due(now):
            nodes.refresh(cluster, epoch, lease.backend, now=now)
            self._nodes.done_at = now
        # 3. Where the cluster has a scheduler of its own, follow its jobs: there is nothing to decide.
        if lease.backend.delegated is not None:
            delegated.reconcile_delegated(cluster, lease, lease.backend.delegated)
            self._collect_garbage(lease, now)
            return
        # 4. Read the rows. A new leader places what waits before it has observed a hundred thousand pods.
        self.cache.refresh(cluster, self.state.nominated, now=now)
        if self.state.cursor is None:
            self._schedule(cluster, lease, has_observed=False)
        # 5. Observe our pods, and what they use.
        observations.record_observations(lease, self.cache, now=now)
        self._measure(lease, now)
        # 6. Stop here if nothing happened.
        if self._is_quiet(now):
            return
        last = event_log.last_number()
        # 7. Sync jobs, ask the engine, record its decisions, apply them.
        self._schedule(cluster, lease)
        # 8. Show in the cluster why pods wait, and its queues.
        external_pods.report_reasons(lease, self.cache)
        displayed_queues.display_queues(cluster, lease, self.cache)
        # 9. Remove what deleted jobs leave behind.
        self._collect_garbage(lease, now)
        self._acted_on, self.full_look.done_at = last, now

    def _start_over(self, epoch: int) -> None:
        self.epoch, self._acted_on = epoch, -1
        self.state, self.cache, self.engine_cache = ReconcilerState(), ClusterCache(), SchedulerCache()

    def _measure(self, lease: LeaseContext, now: datetime) -> None:
        """Record what pods use, where the backend can tell, and thin out old records."""
        if lease.backend.metrics is None:
            return
        if self._measuring.is_due(now):
            pod_metrics.measure_pods(lease, lease.backend.metrics, self.cache.pods())
            self._measuring.done_at = now
        if self._thinning.is_due(now):
            usage.thin(now=now)
            self._thinning.done_at = now

    def _is_quiet(self, now: datetime) -> bool:
        """Nothing happened since the last full look, and that is not long ago (time itself can make a difference)."""
        return not self.full_look.is_due(now) and self._acted_on == event_log.last_number()

    def _schedule(self, cluster: Cluster, lease: LeaseContext, *, has_observed: bool = True) -> None:
        """Rounds until one changes nothing.

        Before a new leader has observed its pods, those that ended meanwhile still take their room: what is placed
        then fits. Nothing else is done on such grounds.
        """
        for _ in range(_MAX_ROUNDS):
            if not self._round(cluster, lease, has_observed=has_observed):
                return

    def _round(self, cluster: Cluster, lease: LeaseContext, *, has_observed: bool) -> bool:
        """Sync jobs, decide, record, apply. Returns whether there may be more to do."""
        now, cache, state = clock.now(), self.cache, self.state
        # a. Jobs that were admitted get their pods; jobs on their way somewhere move on.
        cache.refresh(cluster, state.nominated, now=now)
        if changed := self._sync_jobs(lease, cache.dirty(now) if has_observed else cache.unplaced(), now):
            cache.refresh(cluster, state.nominated, now=now)
        # b. The engine decides on a snapshot. Evictions that a budget forbids are dropped; it is asked again.
        snapshot = cache.snapshot(cluster)
        decided = self._decide(cluster, snapshot, now)
        is_protected = has_observed and disruption_budgets.protects_victims(lease, snapshot, decided, now=now)
        found = decisions.by_job(snapshot, decided)
        if is_protected:
            found = [one for one in found if not one.evictions]
        if not has_observed:
            found = [one for one in found if decisions.only_places(one)]
        # c. All that was decided is recorded before the first of it is applied.
        cache.invalidate(decision.job_id for decision in found)
        recorded = services.commit(cluster.pk, lease.epoch, found, now=now)
        if has_observed and not is_protected:
            state.nominated = decisions.still_nominated(snapshot, decided, state.nominated)
        cache.refresh(cluster, state.nominated, now=now)
        # d. Pods are started and stopped as the rows now say.
        tenancy.apply_tenancy(lease, cache)
        placed = {pod for one in found for pod in one.binds}
        apply_decisions(lease, [pod for pod in cache.with_orders() if has_observed or pod.pk in placed], now=now)
        return bool(changed or recorded or is_protected)

    def _sync_jobs(self, lease: LeaseContext, entries: Iterable[CacheEntry], now: datetime) -> bool:
        inside = (entry for entry in entries if not (entry.job.is_external or _waits_for_admission(entry.job, now)))
        due = [entry.job.pk for entry in inside if services.would_sync(entry.job, entry.pods, now)]
        self.cache.invalidate(due)
        address_of = lease.runner.address
        changes = [services.sync(lease.cluster_id, lease.epoch, pk, address_of=address_of, now=now) for pk in due]
        return any(changes)

    def _decide(self, cluster: Cluster, snapshot: Snapshot, now: datetime) -> Decisions:
        """What the engine decides. A plugin's fault is logged when it begins, not at every decision."""
        engine_state = disruption_budgets.mark_protected(snapshot.state, self.state)
        policy = policies.in_force(cluster)
        decided = metrics.cycle(cluster.name, engine_state, policy, now, cache=self.engine_cache)
        for fault in decided.faults:
            if fault not in self._faults:
                log.error("cluster %s: %s failed at %s: %s", cluster, fault.name, fault.point, fault.error)
        self._faults = decided.faults
        if settings.CHECK_ENGINE and (found := differences(self.engine_cache)):
            log.error("cluster %s: the engine's cache differs from the rows: %s", cluster, "; ".join(found[:10]))
            self.engine_cache = SchedulerCache()
        return decided

    def _collect_garbage(self, lease: LeaseContext, now: datetime) -> None:
        """What deleted jobs leave behind goes: all but logs and history, and those when their time is over."""
        garbage_collection.collect_garbage(lease, now=now)
        if self._purging.is_due(now):
            self._purging.done_at = None if garbage_collection.purge_expired(lease, now=now) else now
        if self.sweeping.is_due(now):
            self.sweeping.done_at = now  # also where it fails: it is expensive
            garbage_collection.sweep_leftovers(lease)


def _waits_for_admission(job: Job, now: datetime) -> bool:
    """It waits to be admitted, and may; or it is over."""
    waits = job.gang_phase == GangPhase.PENDING and job.phase == JobPhase.PENDING
    return job.is_final or (waits and not job_facts(job).is_out_of_time(now))
