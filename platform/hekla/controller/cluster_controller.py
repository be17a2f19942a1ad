"""The controller of one cluster: reconciles its backend with the rows, under the cluster's lease.

`ClusterController.reconcile` is level-triggered: it acts on the present state. Its caches only save work, so a new
process starts without them and gets the same result. Reconciliations of a cluster never overlap: a lock separates them
within a process, the lease between processes.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Event, Lock

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import job_facts
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import services as usage
from hekla.backends.base import Backend, BackendError
from hekla.controller import (
    autoscaling,
    cluster_objects,
    decisions,
    delegated,
    displayed_queues,
    disruption_budgets,
    draining,
    external_pods,
    garbage_collection,
    job_faults,
    job_traces,
    metrics,
    node_usage,
    nodes,
    observations,
    pod_metrics,
    tenancy,
)
from hekla.controller.backends import backend_of
from hekla.controller.cycle_recorder import (
    EVENTS,
    FOLLOW_UP,
    LEADER,
    TIME,
    CycleRecorder,
    EngineRun,
    NotedAnswers,
    limit_of,
)
from hekla.controller.extender_calls import ExtenderCalls
from hekla.controller.lease_context import LeaseContext, identity
from hekla.controller.pods import apply_decisions
from hekla.controller.queue_meter import QueueMeter
from hekla.controller.state import ReconcilerState
from hekla.domain.phases import GangPhase, JobPhase
from hekla.engine.audit import differences
from hekla.engine.decisions import ExtensionFault
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.lib import clock
from hekla.scheduling import policies
from hekla.scheduling.cache import CacheEntry, ClusterCache
from hekla.scheduling.snapshot import Snapshot

log = logging.getLogger(__name__)
CACHE_DIFFERS = "the engine's cache differs from the rows"
_MAX_ROUNDS = 8


@dataclass
class Timer:
    """The interval of a periodic action, and when it was last done; the caller passes the time."""

    every: timedelta
    done_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether the action was never done, or at least `every` ago."""
        return self.done_at is None or now - self.done_at >= self.every


class ClusterController:
    """Reconciles one cluster. `epoch`: of the lease of its last reconciliation. `is_responsive`: its backend answered
    in the last one. `fault`: the unexpected error that ended the last one.

    `full_look`: how often it checks everything although nothing happened. `sweeping`: how often it searches the backend
    for objects that arrived after their job was cleaned.
    """

    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.epoch: int | None = None
        self.is_responsive, self.fault, self.has_reported_fault = False, "", False
        self._progress_at = 0.0
        self._tried_at = 0.0
        self._lock = Lock()
        self._idle = Event()
        self._idle.set()
        self._again = False
        self.state, self.cache, self.engine_cache = ReconcilerState(), ClusterCache(), SchedulerCache()
        self._faults: tuple[ExtensionFault, ...] = ()
        self._extenders = ExtenderCalls()
        self.recorder, self.queue_meter = CycleRecorder(), QueueMeter()
        self._acted_on = -1
        self.reading_nodes = Timer(timedelta(seconds=10))
        self._nodes_of: Backend | None = None
        self.full_look = Timer(timedelta(seconds=5))
        self._measuring = Timer(pod_metrics.EVERY)
        self.measuring_nodes = Timer(node_usage.EVERY)
        self._thinning = Timer(pod_metrics.THIN_EVERY)
        self.autoscaling = Timer(autoscaling.EVERY)
        self.purging = Timer(timedelta(minutes=1))
        self.sweeping = Timer(timedelta(minutes=5))

    def reconcile(self, cluster: Cluster) -> None:
        """Reconcile; and again if a request arrived during it."""
        self._again = True
        while self._again and self._lock.acquire(blocking=False):
            try:
                self._again = False
                self._note_progress()
                self._idle.clear()
                with metrics.RECONCILE_SECONDS.labels(cluster.name).time():
                    self._reconcile(cluster)
                self.fault = ""
            except leases.LeaseLost:
                log.warning("cluster %s: another controller has taken over", cluster)
            except (OperationalError, InterfaceError, InternalError) as error:
                log.warning("cluster %s: no database now: %s", cluster, error)
            except BackendError as error:
                self.is_responsive = False
                log.warning("cluster %s: its backend cannot answer now: %s", cluster, error)
            except Exception as error:
                self.fault = f"{type(error).__name__}: {error}"
                raise
            finally:
                self._tried_at = time.monotonic()
                self._idle.set()
                self._lock.release()

    def request_another(self) -> bool:
        """Request another reconciliation after the one running here. Returns whether one is running."""
        self._again = True  # before reading the lock: `reconcile` reads it after releasing the lock
        return self._lock.locked()

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until the reconciliation running here ends, at most `seconds`."""
        self._idle.wait(seconds)

    def is_idle(self) -> bool:
        """Whether no reconciliation is running here."""
        return not self._lock.locked()

    def is_overdue(self, seconds: float) -> bool:
        """Whether the last reconciliation here ended, or failed, so long ago: time alone can call for one."""
        return time.monotonic() - self._tried_at > seconds

    def is_stuck(self, seconds: float) -> bool:
        """Whether a reconciliation is running here, without progress for so long."""
        last = max(self._progress_at, self.state.led_at)
        return self._lock.locked() and time.monotonic() - last > seconds

    def _note_progress(self) -> None:
        """A step has ended. Within a step, renewals of the lease are progress."""
        self._progress_at = time.monotonic()

    def close(self) -> None:
        """Drop the caches. The controller is not used afterwards."""
        with self._lock:
            self.state, self.cache, self.engine_cache = ReconcilerState(), ClusterCache(), SchedulerCache()
            self.recorder, self.queue_meter = CycleRecorder(), QueueMeter()
            self._extenders.close()

    def _reconcile(self, cluster: Cluster) -> None:
        now = clock.now()
        # 1. Lead. From here on the cluster's row stays valid: a change that moves its pods revokes the lease.
        epoch = leases.take(cluster, identity(), now=now)
        if epoch is None:
            return
        cluster = clusters.by_id(cluster.pk)
        if epoch != self.epoch:
            self._start_over(epoch)
        lease = LeaseContext(cluster.pk, epoch, backend_of(cluster), self.state)
        # 2. Observe external pods and nodes.
        external_pods.observe_external_pods(cluster, lease, now=now)
        if self.reading_nodes.is_due(now) or self._nodes_of is not lease.backend:
            nodes.refresh(cluster, epoch, lease.backend, self.state.nodes, now=now)
            self.state.needs_devices = cluster_objects.policy_needs_devices(cluster)
            self.state.needs_budgets = disruption_budgets.policy_reads_budgets(cluster)
            self.reading_nodes.done_at, self._nodes_of = now, lease.backend
        self._measure_nodes(lease, now)
        # 3. If the cluster has its own scheduler, follow its jobs: there is nothing to decide.
        if lease.backend.delegated is not None:
            delegated.reconcile_delegated(cluster, lease, lease.backend.delegated, self.cache.faults)
            self.is_responsive = True
            self._measure(lease, partial(jobs.unfinished_pods, cluster.pk), partial(jobs.unfinished, cluster.pk), now)
            self._collect_garbage(lease, now)
            return
        cluster_objects.refresh_runtime_classes(cluster, lease, now=now)
        # 4. Read the rows. A new leader places pending pods before it observes a hundred thousand pods.
        self.cache.refresh(cluster, self.state.nominated, now=now)
        cluster_objects.refresh(cluster, lease, self.cache, now=now)
        disruption_budgets.refresh(cluster, lease, self.cache, now=now)
        if self.state.cursor is None:
            self._schedule(cluster, lease, LEADER, has_observed=False)
        # 5. Observe our pods, and measure their usage.
        self._note_progress()
        observations.record_observations(lease, self.cache, now=now)
        self.is_responsive = True
        self._measure(lease, self.cache.pods, lambda: (job for job, _pods in self.cache.jobs()), now)
        # 6. Stop here if nothing happened.
        if self._is_quiet(now):
            return
        last = event_log.last_number()
        # 7. Sync jobs, ask the engine, record its decisions, apply them.
        self._schedule(cluster, lease, TIME if last == self._acted_on else EVENTS)
        # 8. Display queues, and the reasons of pending external pods, in the cluster.
        external_pods.report_reasons(lease, self.cache)
        displayed_queues.display_queues(cluster, lease, self.cache)
        # 9. Record the cycles that decided something and the amounts of queues; collect garbage of deleted jobs.
        self._record_cycles(cluster, lease, now)
        self._collect_garbage(lease, now)
        self._acted_on, self.full_look.done_at = last, now

    def _record_cycles(self, cluster: Cluster, lease: LeaseContext, now: datetime) -> None:
        self.recorder.write(cluster, lease.epoch, now=now)
        self.queue_meter.store(cluster, lease, now=now)

    def _start_over(self, epoch: int) -> None:
        self.epoch, self._acted_on, self._nodes_of = epoch, -1, None
        self.recorder, self.queue_meter = CycleRecorder(), QueueMeter()
        self.state, self.cache, self.engine_cache = ReconcilerState(), ClusterCache(), SchedulerCache()

    def _measure(
        self, lease: LeaseContext, pods: Callable[[], Sequence[Pod]], scaled: Callable[[], Iterable[Job]], now: datetime
    ) -> None:
        """Record what pods use, if the backend can measure it; scale jobs by it, and thin out old records."""
        if lease.backend.metrics is None:
            return
        if self._measuring.is_due(now):
            pod_metrics.measure_pods(lease, lease.backend.metrics, pods())
            self._measuring.done_at = now
        if self.autoscaling.is_due(now):
            autoscaling.scale_jobs(lease, scaled(), now=now)
            self.autoscaling.done_at = now
        if self._thinning.is_due(now):
            usage.thin(now=now)
            self._thinning.done_at = now

    def _measure_nodes(self, lease: LeaseContext, now: datetime) -> None:
        """Record what nodes use. If none was measured, the next reconciliation tries again."""
        meter = lease.backend.node_meter
        if meter is None or not self.measuring_nodes.is_due(now):
            return
        stored = node_usage.measure_nodes(lease, meter, self.state.usage)
        if stored is not None:
            self.measuring_nodes.done_at = now
            self.cache.usage.update(stored)

    def _is_quiet(self, now: datetime) -> bool:
        """Whether nothing was recorded since the last full check, which is recent: time alone can change decisions."""
        return not self.full_look.is_due(now) and self._acted_on == event_log.last_number()

    def _schedule(
        self, cluster: Cluster, lease: LeaseContext, trigger: CycleRecord.Trigger, *, has_observed: bool = True
    ) -> None:
        """Run rounds until one changes nothing.

        Until a new leader has observed its pods, ended pods may still count as running. Placing pods is safe then,
        because they fit anyway; nothing else is done.
        """
        for _ in range(_MAX_ROUNDS):
            if not self._round(cluster, lease, trigger, has_observed=has_observed):
                return
            trigger = FOLLOW_UP

    def _round(
        self, cluster: Cluster, lease: LeaseContext, trigger: CycleRecord.Trigger, *, has_observed: bool
    ) -> bool:
        """Sync jobs, decide, record, apply. Returns whether there may be more to do."""
        now, cache, state, begin = clock.now(), self.cache, self.state, time.time_ns()
        # a. Create the pods of admitted jobs; advance the phases of jobs.
        cache.refresh(cluster, state.nominated, now=now)
        if changed := self._sync_jobs(lease, cache.dirty(now) if has_observed else cache.unplaced(), now):
            cache.refresh(cluster, state.nominated, now=now)
        if faulty := job_faults.record_faults(lease, cache.faults, now=now):
            cache.invalidate(faulty)
            cache.refresh(cluster, state.nominated, now=now)
        if has_observed and draining.evict_late_pods(cluster, lease, cache, now=now):
            changed = True
            cache.refresh(cluster, state.nominated, now=now)
        # b. The engine decides on a snapshot. If a budget forbids an eviction, all are dropped, and it decides again.
        self._note_progress()
        snapshot = cache.snapshot(cluster)
        run = self._decide(cluster, snapshot, now)
        decided = run.decided
        is_protected = has_observed and disruption_budgets.protects_victims(lease, snapshot, decided, now=now)
        found = decisions.by_job(snapshot, decided)
        if is_protected:
            found = [one for one in found if not one.evictions]
        if not has_observed:
            found = [one for one in found if decisions.only_places(one)]
        # c. Record all decisions before the first is applied.
        self._note_progress()
        cache.invalidate(decision.job_id for decision in found)
        recorded = services.commit(cluster.pk, lease.epoch, found, now=now)
        if has_observed and not is_protected:
            state.nominated = decisions.still_nominated(snapshot, decided, state.nominated)
        cache.refresh(cluster, state.nominated, now=now)
        # d. Start and stop pods to match the rows.
        self._note_progress()
        tenancy.apply_tenancy(lease, cache.tenants())
        placed = {pod for one in found for pod in one.binds}
        pods = [pod for pod in cache.with_orders() if has_observed or pod.pk in placed]
        apply_decisions(lease, pods, cache.faults, now=now)
        limit = limit_of(is_protected=is_protected, has_observed=has_observed)
        self.recorder.note(run, found, trigger=trigger, limit=limit)
        job_traces.note_round(cluster, snapshot, found, begin=begin, engine_seconds=run.seconds)
        return bool(changed or recorded or is_protected)

    def _sync_jobs(self, lease: LeaseContext, entries: Iterable[CacheEntry], now: datetime) -> bool:
        changes = [self._sync_job(lease, entry, now) for entry in entries if not entry.job.is_external]
        return any(changes)

    def _sync_job(self, lease: LeaseContext, entry: CacheEntry, now: datetime) -> bool:
        """Sync one job, if that would change anything. Returns whether it did."""
        job, sync = entry.job, partial(services.sync, address_of=lease.runner.address, now=now)

        def act() -> bool:
            if _waits_for_admission(job, now) or not services.would_sync(job, entry.pods, now):
                return False
            self.cache.invalidate([job.pk])
            return sync(lease.cluster_id, lease.epoch, job.pk)

        return bool(self.cache.faults.attempt(job, "sync", act, now))

    def _decide(self, cluster: Cluster, snapshot: Snapshot, now: datetime) -> EngineRun:
        """Run the engine. A plugin's fault is logged when it begins, not at each decision."""
        engine_state = disruption_budgets.mark_protected(snapshot.state, self.state)
        text, extenders = policies.text_in_force(cluster), NotedAnswers(self._extenders)
        self._extenders.begin_cycle()
        started_at = time.perf_counter()
        decided = metrics.cycle(
            cluster.name,
            engine_state,
            policies.parsed(text),
            now,
            extenders,
            cache=self.engine_cache,
            look=self.queue_meter.look(now),
        )
        seconds, considered = time.perf_counter() - started_at, len(self.engine_cache.unsettled_jobs)
        for fault in decided.faults:
            if fault not in self._faults:
                log.error("cluster %s: %s failed at %s: %s", cluster, fault.name, fault.point, fault.error)
        self._faults = decided.faults
        if settings.CHECK_ENGINE and (found := differences(self.engine_cache)):
            log.error("cluster %s: %s: %s", cluster, CACHE_DIFFERS, "; ".join(found[:10]))
            self.engine_cache = SchedulerCache()
        return EngineRun(engine_state, text, now, decided, extenders.answers, seconds, considered)

    def _collect_garbage(self, lease: LeaseContext, now: datetime) -> None:
        """Clean up deleted jobs, purge expired logs and history, and sweep leftovers."""
        garbage_collection.collect_garbage(lease, now=now)
        if self.purging.is_due(now):
            self.purging.done_at = None if garbage_collection.purge_expired(lease, now=now) else now
        if self.sweeping.is_due(now):
            self.sweeping.done_at = now  # before the sweep, because it is expensive even if it fails
            garbage_collection.sweep_leftovers(lease)


def _waits_for_admission(job: Job, now: datetime) -> bool:
    """Whether the job waits for admission and may still wait, or has ended."""
    waits = job.gang_phase == GangPhase.PENDING and job.phase == JobPhase.PENDING
    return job.is_final or (waits and not job_facts(job).is_out_of_time(now))
