"""A cache of the rows of a cluster, updated from the event log: a reconcile costs what changed, not what exists.

Only jobs with new events are read again, and only those are new objects for the engine. Everything else is the very
same object as before, which the engine does not examine again. All jobs and pods are read again every five minutes, so
that no error lasts; of nodes and reported objects, the versions and digests are compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import is_pending
from hekla.apps.external_pods import selectors as external_pods
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_fault, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import selectors as queues
from hekla.apps.quotas import selectors as quotas
from hekla.domain.events import QuotaSet
from hekla.domain.phases import PodPhase
from hekla.engine import model
from hekla.engine.devices import Devices
from hekla.engine.storage import Storage
from hekla.scheduling import snapshot
from hekla.scheduling.cluster_objects import ObjectCache, ObjectDigests
from hekla.scheduling.devices import NO_DEVICES, device_cache, with_own_claims
from hekla.scheduling.disruption_budgets import BudgetCache
from hekla.scheduling.job_faults import SPEC, JobFaults
from hekla.scheduling.node_cache import NodeCache
from hekla.scheduling.node_usage import UsageCache
from hekla.scheduling.runtime_classes import RuntimeClassesByName, runtime_class_cache
from hekla.scheduling.snapshot import Snapshot
from hekla.scheduling.storage import NO_STORAGE, mounts_claims, pods_mount_claims, storage_cache, with_new_claims

_ALL_EVERY = timedelta(minutes=5)
_MAX_EVENTS = 10_000
"""After more events, everything is read again."""
_JOB, _QUEUE, _TENANT = "job:", "queue:", "tenant:"
_JOB_OF_POD = Pod._meta.get_field("job")


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A job with its pods, the nominated nodes of its pods, and its form for the engine (`job_info`).

    `is_timed`: time alone may require an action; `is_ordered`: some of its pods are to be started or stopped;
    `is_held`: a fault holds it, so the engine only counts what its pods use.
    """

    job: Job
    pods: list[Pod]
    nominated: dict[str, str]
    job_info: model.PodGroupSpec
    is_timed: bool
    is_ordered: bool
    is_held: bool
    by_attempt: Mapping[tuple[str, int, int], Pod]


@dataclass
class ClusterCache:
    """The cache of one cluster."""

    number: int = -1
    """The last event that is included."""
    _read_at: datetime | None = None
    """The time of the last full read."""
    _entries: dict[int, CacheEntry] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)
    """Row ids of the jobs, by their uids as backends write them."""
    _objects: ObjectDigests = field(default_factory=ObjectDigests)
    _devices: ObjectCache[Devices] = field(default_factory=device_cache)
    _devices_snapshot: Devices | None = None
    """The devices with the claims of all pods; None: read them again."""
    _last_devices: Devices = NO_DEVICES
    _claiming: set[int] = field(default_factory=set)
    """The jobs whose pods claim devices."""
    _storage: ObjectCache[Storage] = field(default_factory=storage_cache)
    _storage_snapshot: Storage | None = None
    """The volumes with the claims of all jobs; None: read them again."""
    _last_storage: Storage = NO_STORAGE
    _mounting: set[int] = field(default_factory=set)
    """The jobs that mount claims to volumes."""
    _budgets: BudgetCache = field(default_factory=BudgetCache)
    _queues: tuple[model.QueueSpec, ...] | None = None
    """The queues of the cluster; None: read them again, as after an event about one."""
    _quotas: tuple[model.TenantQuota, ...] | None = None
    """The quotas that limit resources; None: read them again, as after an event about one."""
    _runtimes: ObjectCache[RuntimeClassesByName] = field(default_factory=runtime_class_cache)
    _cluster: Cluster | None = None
    _invalid: set[int] = field(default_factory=set)
    _dirty: set[int] = field(default_factory=set)
    _has_nominated: bool = False
    """Whether the last refresh knew any nominated node."""
    _snapshot: Snapshot | None = None
    """The last snapshot, until one of its jobs is read again."""
    faults: JobFaults = field(default_factory=JobFaults)
    nodes: NodeCache = field(default_factory=NodeCache)
    usage: UsageCache = field(default_factory=UsageCache)

    def invalidate(self, job_ids: Iterable[int]) -> None:
        """Read these jobs again at the next refresh: they are written to, and not every write is an event."""
        self._invalid.update(job_ids)

    def invalidate_all(self) -> None:
        """Read everything again at the next refresh."""
        self._read_at = None

    def refresh(self, cluster: Cluster, nominated: Mapping[str, str], *, now: datetime) -> None:
        """Update from the database. `nominated`: by pod, the node where other pods were evicted for it."""
        is_old = self._is_old(now) or (self._cluster is not None and _counts_storage(self._cluster, cluster))
        number, self._cluster = event_log.last_number(), cluster
        self._invalid.update(self.faults.release_due(now))
        uids = None if is_old else self._changed(cluster, number)
        if uids is None:
            self._read_all(cluster, nominated, now)
        else:
            uids |= self._with_other_nodes(nominated)
            self._has_nominated |= bool(nominated)  # also if reading fails half-way
            self._read_again(cluster, uids, nominated, now)
        self._has_nominated = bool(nominated)
        self.number, self._invalid = number if uids is None else max(number, self.number), set()

    def dirty(self, now: datetime) -> list[CacheEntry]:
        """The jobs that were read since the last call, and those that time may change."""
        dirty, self._dirty = self._dirty, set()
        return [
            entry for pk, entry in self._entries.items() if entry.is_timed or pk in dirty or _is_due(entry.job, now)
        ]

    def forget_dirty(self) -> None:
        """As `dirty`, for those who do not need the jobs."""
        self._dirty = set()

    def unplaced(self) -> list[CacheEntry]:
        """The jobs whose pods are all pending."""
        return [entry for entry in self._entries.values() if all(pod.phase == PodPhase.PENDING for pod in entry.pods)]

    def pods(self) -> list[Pod]:
        """Pods that hold resources or wait for them, also those of finished jobs."""
        return [pod for entry in self._entries.values() for pod in entry.pods if not pod.is_final]

    @property
    def claims_devices(self) -> bool:
        """Whether pods of some job claim devices."""
        return not self._claiming.isdisjoint(self._entries)

    @property
    def mounts_claims(self) -> bool:
        """Whether pods of some job mount claims to volumes that the cluster reports."""
        return not self._mounting.isdisjoint(self._entries)

    def jobs(self) -> Iterator[tuple[Job, list[Pod]]]:
        """All jobs that are unfinished or still hold resources, with their pods."""
        return ((entry.job, entry.pods) for entry in self._entries.values())

    def tenants(self) -> dict[int, str]:
        """The tenants of these jobs: slugs by row id."""
        jobs_by_tenant = {entry.job.tenant_id: entry.job for entry in self._entries.values()}
        return {pk: job.tenant.slug for pk, job in jobs_by_tenant.items()}

    def with_orders(self) -> list[Pod]:
        """The unfinished pods of jobs in which some pod is to be started or stopped."""
        return [pod for entry in self._entries.values() if entry.is_ordered for pod in entry.pods if not pod.is_final]

    def job(self, uid: str) -> Job | None:
        """A job in the cache, or None; its uid is without dashes."""
        entry = self._entries.get(self._ids.get(uid, -1))
        return entry.job if entry else None

    def tenant_of(self, job: str) -> str:
        """The slug of the job's tenant; empty if the job is not in the cache."""
        found = self.job(job)
        return found.tenant.slug if found else ""

    def find(self, job: str, task: str, index: int, attempt: int) -> Pod | None:
        """An unfinished pod in the cache, or None; `job` is the uid without dashes."""
        entry = self._entries.get(self._ids.get(job, -1))
        pod = entry.by_attempt.get((task, index, attempt)) if entry else None
        return None if pod is None or pod.is_final else pod

    def _is_old(self, now: datetime) -> bool:
        return self._read_at is None or now - self._read_at > _ALL_EVERY

    def _changed(self, cluster: Cluster, number: int) -> set[str] | None:
        """The uids of jobs with new events. None: too many events, read everything."""
        if number <= self.number:  # the caller's transaction may see an earlier instant
            return set()
        topic, kinds = f"cluster:{cluster.pk}", (QuotaSet.kind,)
        subjects = event_log.subjects(self.number, number, topic=topic, or_kinds=kinds, limit=_MAX_EVENTS)
        if subjects is None:
            return None
        if any(subject.startswith(_QUEUE) for subject in subjects):
            self._queues = None
        if any(subject.startswith(_TENANT) for subject in subjects):
            self._quotas = None
        if f"cluster:{cluster.pk}" in subjects:
            self._devices_snapshot = self._storage_snapshot = None
            self._objects.invalidate()
            self.nodes.invalidate()
        return {subject.removeprefix(_JOB) for subject in subjects if subject.startswith(_JOB)}

    def _with_other_nodes(self, nominated: Mapping[str, str]) -> set[str]:
        """The uids of the jobs whose nominated nodes changed. Without any, before and now, no job is looked at."""
        if not nominated and not self._has_nominated:
            return set()
        return {str(entry.job.uid) for entry in self._entries.values() if entry.nominated != _of(entry.pods, nominated)}

    def _read_all(self, cluster: Cluster, nominated: Mapping[str, str], now: datetime) -> None:
        self._objects.invalidate()
        self._runtimes.update(cluster, self._objects.read(cluster))
        found = [*jobs.unfinished(cluster.pk), *jobs.ending(cluster.pk)]
        self._entries = {job.pk: self._entries[job.pk] for job in found if job.pk in self._entries}
        self._ids = {entry.job.uid.hex: pk for pk, entry in self._entries.items()}
        self._snapshot = self._devices_snapshot = self._storage_snapshot = None
        self._queues = self._quotas = None
        self.nodes.invalidate()
        self._claiming &= self._entries.keys()
        self._mounting &= self._entries.keys()
        self.usage.invalidate()
        self._read(found, nominated, now)
        self._read_at = now

    def _read_again(self, cluster: Cluster, uids: set[str], nominated: Mapping[str, str], now: datetime) -> None:
        """Read these jobs, the invalid ones, and those with a runtime class if the runtime classes changed."""
        if self._runtimes.update(cluster, self._objects.read(cluster)):
            self._invalid.update(pk for pk, entry in self._entries.items() if _names_runtime_class(entry.job))
        uids |= {str(self._entries[pk].job.uid) for pk in self._invalid & self._entries.keys()}
        found = jobs.by_uids(cluster.pk, uids) if uids else []
        if len(found) < len(uids):
            self._forget(uids - {str(job.uid) for job in found})
        self._read(found, nominated, now)

    def _forget(self, uids: set[str]) -> None:
        """Remove jobs that are no longer in this cluster."""
        gone = [pk for pk, entry in self._entries.items() if str(entry.job.uid) in uids]
        for pk in gone:
            del self._entries[pk]
            self.faults.forget(pk)
        if gone:
            self._snapshot = None

    def _read(self, found: list[Job], nominated: Mapping[str, str], now: datetime) -> None:
        """Update these jobs; finished ones that hold nothing are removed."""
        if found:
            self._snapshot = None
        pods: dict[int, list[Pod]] = {job.pk: [] for job in found}
        for pod in jobs.pods_of(list(pods)) if pods else ():
            pods[pod.job_id].append(pod)
        if external := [job for job in found if job.is_external]:
            external_pods.attach_objects(external, [pod for job in external for pod in pods[job.pk]])
        for job in found:
            self._dirty.add(job.pk)
            own = [pod for pod in pods[job.pk] if not pod.is_final] if job.is_final else pods[job.pk]
            if own or not job.is_final:
                self._put(job, own, _of(own, nominated), now)
            else:
                self._entries.pop(job.pk, None)
                self._ids.pop(job.uid.hex, None)
                self.faults.forget(job.pk)
        if found and any(former > later for former, later in pairwise(self._entries)):
            self._entries = dict(sorted(self._entries.items()))

    def _put(self, job: Job, pods: list[Pod], nominated: dict[str, str], now: datetime) -> None:
        for pod in pods:
            _JOB_OF_POD.set_cached_value(pod, job)  # of a hundred thousand pods, an assignment takes ten times as long
        if not spec_fault(job):
            self._note_claims(job, pods)
        before, job_info = self._entries.get(job.pk), self._job_info(job, pods, nominated, now)
        is_held = job_info is None
        job_info = job_info or snapshot.held_job(job, pods, self._runtimes.parsed)
        job_info = before.job_info if before is not None and before.job_info == job_info else job_info
        by_attempt = {(pod.task, pod.index, pod.attempt): pod for pod in pods}
        is_ordered = any(pod.stopping or pod.phase == PodPhase.BOUND for pod in pods)
        is_timed = spec_of(job).has_timeouts
        self._entries[job.pk] = CacheEntry(job, pods, nominated, job_info, is_timed, is_ordered, is_held, by_attempt)
        self._ids[job.uid.hex] = job.pk

    def _note_claims(self, job: Job, pods: list[Pod]) -> None:
        spec = spec_of(job)
        if spec.claims_devices or spec.volumes or job.is_external:
            job.cluster = self._cluster or job.cluster
        if spec.claims_devices:
            self._claiming.add(job.pk)
            self._devices_snapshot = None
        if (spec.volumes and mounts_claims(job)) or (job.is_external and pods_mount_claims(job, pods)):
            self._mounting.add(job.pk)
            self._storage_snapshot = None
        else:
            self._mounting.discard(job.pk)

    def _job_info(
        self, job: Job, pods: list[Pod], nominated: dict[str, str], now: datetime
    ) -> model.PodGroupSpec | None:
        """The job for the engine; None if a fault holds it."""
        if self.faults.of(job) is not None:
            return None
        if fault := spec_fault(job):
            self.faults.add(job, SPEC, fault, now)
            return None
        runtimes = self._runtimes.parsed
        return self.faults.attempt(job, "snapshot", lambda: snapshot.job(job, pods, nominated, runtimes), now)

    def snapshot(self, cluster: Cluster) -> Snapshot:
        """The engine's input; the very same object as before if nothing changed."""
        known, around = self._snapshot, self._without_jobs(cluster)
        if known is None:
            job_info = tuple(entry.job_info for entry in self._entries.values())
            active = {
                str(pk): entry.job for pk, entry in self._entries.items() if not (entry.job.is_final or entry.is_held)
            }
            state = replace(around, jobs=job_info, last_shuffle_at=_last_shuffle_at(cluster))
            pods_by_job = [entry.pods for entry in self._entries.values()]
            known = Snapshot(state, active, pods_by_job, self._runtimes.parsed)
        elif replace(known.state, jobs=(), last_shuffle_at=None) != around:
            state = replace(around, jobs=known.state.jobs, last_shuffle_at=known.state.last_shuffle_at)
            known = replace(known, state=state)
        self._snapshot = known
        return known

    def _without_jobs(self, cluster: Cluster) -> model.ClusterState:
        """Everything in the engine's input but the jobs, and what changes only together with a job."""
        return model.ClusterState(
            nodes=self.usage.added_to(self.nodes.nodes(cluster), cluster),
            hyper_nodes=self.nodes.hypernodes(cluster),
            devices=self._devices_of(cluster),
            storage=self._storage_of(cluster),
            queues=self._queues_of(cluster),
            jobs=(),
            tenant_quotas=self._tenant_quotas(),
            budgets=self._budgets_of(cluster),
        )

    def _queues_of(self, cluster: Cluster) -> tuple[model.QueueSpec, ...]:
        may_be_undone = is_pending(_QUEUE)  # as in a dry run: such rows are not stored
        if self._queues is not None and not may_be_undone:
            return self._queues
        found = tuple(map(snapshot.queue, queues.of_cluster(cluster)))
        if not may_be_undone:
            self._queues = found
        return found

    def _tenant_quotas(self) -> tuple[model.TenantQuota, ...]:
        may_be_undone = is_pending(_TENANT)
        if self._quotas is not None and not may_be_undone:
            return self._quotas
        found = tuple(map(snapshot.bound, quotas.that_bound_resources()))
        if not may_be_undone:
            self._quotas = found
        return found

    def _devices_of(self, cluster: Cluster) -> Devices:
        """The devices and claims; the very same object as before if they are unchanged."""
        if self._devices_snapshot is None:
            self._devices.update(cluster, self._objects.read(cluster))
            claiming = (self._entries[pk] for pk in sorted(self._claiming & self._entries.keys()))
            jobs_with_pods = ((entry.job, entry.pods) for entry in claiming if not spec_fault(entry.job))
            found = with_own_claims(self._devices.parsed, jobs_with_pods)
            self._devices_snapshot = self._last_devices = found if found != self._last_devices else self._last_devices
        return self._devices_snapshot

    def _storage_of(self, cluster: Cluster) -> Storage:
        """The volumes and claims; the very same object as before if they are unchanged."""
        if self._storage_snapshot is None:
            if cluster.config.get("storage"):
                self._storage.update(cluster, self._objects.read(cluster))
            mounting = (self._entries[pk].job for pk in sorted(self._mounting & self._entries.keys()))
            found = with_new_claims(self._storage.parsed, (job for job in mounting if not spec_fault(job)))
            self._storage_snapshot = self._last_storage = found if found != self._last_storage else self._last_storage
        return self._storage_snapshot

    def _budgets_of(self, cluster: Cluster) -> tuple[model.DisruptionBudget, ...]:
        self._budgets.update(cluster, self._objects.read(cluster))
        jobs_with_pods = ((entry.job, entry.pods) for entry in self._entries.values() if not entry.is_held)
        return self._budgets.budgets(cluster, jobs_with_pods)


def read_snapshot(cluster: Cluster, *, now: datetime) -> Snapshot:
    """A fresh snapshot of the cluster from the database, without the nominated nodes that the controller knows."""
    cache = ClusterCache()
    cache.refresh(cluster, {}, now=now)
    return cache.snapshot(cluster)


def _last_shuffle_at(cluster: Cluster) -> float | None:
    """When pods were last evicted for a better placement. It changes only together with a job."""
    at = leases.last_shuffle_at(cluster.pk)
    return None if at is None else at.timestamp()


def _counts_storage(before: Cluster, after: Cluster) -> bool:
    """Whether the configuration changed in what jobs need for the engine."""
    return bool(before.config.get("storage")) != bool(after.config.get("storage"))


def _names_runtime_class(job: Job) -> bool:
    return not spec_fault(job) and any(task.runtime_class for task in spec_of(job).tasks)


def _is_due(job: Job, now: datetime) -> bool:
    """Whether its deadline, or the delay of its restart, has passed."""
    deadline, restart = job.deadline_at, job.restart_at
    if deadline is None and restart is None:
        return False  # nearly all jobs
    return any(at is not None and at <= now for at in (deadline, restart)) and not job.is_final


def _of(pods: Iterable[Pod], nominated: Mapping[str, str]) -> dict[str, str]:
    """The nominated nodes of these pods."""
    return {uid: nominated[uid] for uid in (str(pod.pk) for pod in pods) if uid in nominated} if nominated else {}
