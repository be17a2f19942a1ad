"""What a process has read of a cluster, kept up by the log: so a turn costs what happened, not what there is.

Only jobs of which something happened since the last look are read again, and only of those the engine reads anew:
everything else it gets as the very same object, and does not look at it again. All is read from time to time, so that
no mistake lasts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import selectors as queues
from hekla.apps.quotas import selectors as quotas
from hekla.domain.phases import PodPhase
from hekla.engine import model
from hekla.scheduling import snapshot
from hekla.scheduling.snapshot import Snapshot

_ALL_EVERY = timedelta(minutes=5)
_MAX_EVENTS = 10_000
"""After more events than these all is read again."""
_JOB = "job:"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A job with its pods, the nodes that are kept for some of them, and as the engine reads it (`job_info`).

    `is_timed`: time alone may call for something to be done with it; `is_ordered`: somebody is to start or stop pods.
    """

    job: Job
    pods: list[Pod]
    nominated: dict[str, str]
    job_info: model.PodGroupSpec
    is_timed: bool
    is_ordered: bool
    by_attempt: Mapping[tuple[str, int, int], Pod]


@dataclass
class ClusterCache:
    """See the module."""

    number: int = -1
    """Up to which event it was kept up."""
    _read_at: datetime | None = None
    """When all was read."""
    _entries: dict[int, CacheEntry] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)
    """Of the jobs, by their uids as backends write them."""
    _nodes: dict[str, tuple[object, model.NodeSpec]] = field(default_factory=dict)
    _nodes_snapshot: tuple[model.NodeSpec, ...] | None = None
    """None: they are to be read again."""
    _invalid: set[int] = field(default_factory=set)
    _dirty: set[int] = field(default_factory=set)
    _snapshot: Snapshot | None = None
    """The last snapshot, while no job of it was read again."""

    def invalidate(self, job_ids: Iterable[int]) -> None:
        """Read these again next time: they are written to, and not every write is an event."""
        self._invalid.update(job_ids)

    def refresh(self, cluster: Cluster, nominated: Mapping[str, str], *, now: datetime) -> None:
        """Be as the rows say. `nominated`: nodes from which others were evicted, by the pod to come."""
        number = event_log.last_number()
        uids = None if self._is_old(now) else self._changed(cluster, number)
        if uids is None:
            found = [*jobs.unfinished(cluster.pk), *jobs.ending(cluster.pk)]
            self._entries = {job.pk: self._entries[job.pk] for job in found if job.pk in self._entries}
            self._ids = {entry.job.uid.hex: pk for pk, entry in self._entries.items()}
            self._snapshot = self._nodes_snapshot = None
            self._read(found, nominated)
            self._read_at = now
        else:
            self._read_again(cluster, uids | self._with_other_nodes(nominated), nominated)
        self.number, self._invalid = number if uids is None else max(number, self.number), set()

    def dirty(self, now: datetime) -> list[CacheEntry]:
        """The jobs that were read since this was last asked, and those that time may move."""
        dirty, self._dirty = self._dirty, set()
        return [
            entry for pk, entry in self._entries.items() if entry.is_timed or pk in dirty or _is_late(entry.job, now)
        ]

    def unplaced(self) -> list[CacheEntry]:
        """The jobs of which nothing was ever placed."""
        return [entry for entry in self._entries.values() if all(pod.phase == PodPhase.PENDING for pod in entry.pods)]

    def pods(self) -> list[Pod]:
        """Pods that hold something or wait for it, also those of jobs that are over."""
        return [pod for entry in self._entries.values() for pod in entry.pods if not pod.is_final]

    def jobs(self) -> Iterator[tuple[Job, list[Pod]]]:
        """All that are not over, or hold something still, with their pods."""
        return ((entry.job, entry.pods) for entry in self._entries.values())

    def tenants(self) -> dict[int, str]:
        """Whose jobs these are: their short names by row id."""
        return {entry.job.tenant_id: entry.job.tenant.slug for entry in self._entries.values()}

    def with_orders(self) -> list[Pod]:
        """Those among them that somebody is to start or to stop, beside some of which that is done."""
        return [pod for entry in self._entries.values() if entry.is_ordered for pod in entry.pods if not pod.is_final]

    def tenant_of(self, job: str) -> str:
        """Whose this job is, by the short name; empty where it is none of these."""
        entry = self._entries.get(self._ids.get(job, -1))
        return entry.job.tenant.slug if entry else ""

    def find(self, job: str, task: str, index: int, attempt: int) -> Pod | None:
        """One of these pods; a job's uid is written without dashes."""
        entry = self._entries.get(self._ids.get(job, -1))
        pod = entry.by_attempt.get((task, index, attempt)) if entry else None
        return None if pod is None or pod.is_final else pod

    def _is_old(self, now: datetime) -> bool:
        return self._read_at is None or now - self._read_at > _ALL_EVERY

    def _changed(self, cluster: Cluster, number: int) -> set[str] | None:
        """The uids of the jobs of which something happened. None: there is more than one cares to follow."""
        if number <= self.number:  # whoever asks may look at a moment that is past
            return set()
        subjects = event_log.subjects(self.number, number, topic=f"cluster:{cluster.pk}", limit=_MAX_EVENTS)
        if subjects is None:
            return None
        if f"cluster:{cluster.pk}" in subjects:
            self._nodes_snapshot = None
        return {subject.removeprefix(_JOB) for subject in subjects if subject.startswith(_JOB)}

    def _with_other_nodes(self, nominated: Mapping[str, str]) -> set[str]:
        """The jobs for whose pods other nodes are kept than before."""
        return {str(entry.job.uid) for entry in self._entries.values() if entry.nominated != _of(entry.pods, nominated)}

    def _read_again(self, cluster: Cluster, uids: set[str], nominated: Mapping[str, str]) -> None:
        uids |= {str(self._entries[pk].job.uid) for pk in self._invalid & self._entries.keys()}
        found = jobs.by_uids(cluster.pk, uids) if uids else []
        if len(found) < len(uids):
            self._forget(uids - {str(job.uid) for job in found})
        self._read(found, nominated)

    def _forget(self, uids: set[str]) -> None:
        """These are not jobs of this cluster any more."""
        gone = [pk for pk, entry in self._entries.items() if str(entry.job.uid) in uids]
        for pk in gone:
            del self._entries[pk]
        if gone:
            self._snapshot = None

    def _read(self, found: list[Job], nominated: Mapping[str, str]) -> None:
        """Take these jobs in as they are now; what is over and holds nothing any more is left out."""
        if found:
            self._snapshot = None
        pods: dict[int, list[Pod]] = {job.pk: [] for job in found}
        for pod in jobs.pods_of(list(pods)) if pods else ():
            pods[pod.job_id].append(pod)
        for job in found:
            self._dirty.add(job.pk)
            own = [pod for pod in pods[job.pk] if not (job.is_final and pod.is_final)]
            if own or not job.is_final:
                self._put(job, own, _of(own, nominated))
            else:
                self._entries.pop(job.pk, None)
                self._ids.pop(job.uid.hex, None)
        if any(former > later for former, later in pairwise(self._entries)):
            self._entries = dict(sorted(self._entries.items()))

    def _put(self, job: Job, pods: list[Pod], nominated: dict[str, str]) -> None:
        for pod in pods:
            pod.job = job
        before, job_info = self._entries.get(job.pk), snapshot.job(job, pods, nominated)
        job_info = before.job_info if before is not None and before.job_info == job_info else job_info
        by_attempt = {(pod.task, pod.index, pod.attempt): pod for pod in pods}
        is_ordered = any(pod.stopping or pod.phase == PodPhase.BOUND for pod in pods)
        self._entries[job.pk] = CacheEntry(
            job, pods, nominated, job_info, spec_of(job).has_timeouts, is_ordered, by_attempt
        )
        self._ids[job.uid.hex] = job.pk

    def snapshot(self, cluster: Cluster) -> Snapshot:
        """What the engine is asked about; the very same as before where all is as it was."""
        if self._nodes_snapshot is None:
            self._nodes_snapshot = tuple(self._node(node) for node in clusters.nodes_of(cluster))
        known = tuple(snapshot.queue(queue) for queue in queues.of_cluster(cluster))
        bounds = tuple(map(snapshot.bound, quotas.that_bound_resources()))
        if self._snapshot is None or _around(self._snapshot.state) != (self._nodes_snapshot, known, bounds):
            job_info = tuple(entry.job_info for entry in self._entries.values())
            self._snapshot = Snapshot(
                model.ClusterState(nodes=self._nodes_snapshot, queues=known, jobs=job_info, tenant_quotas=bounds),
                {str(pk): entry.job for pk, entry in self._entries.items() if not entry.job.is_final},
                [entry.pods for entry in self._entries.values()],
            )
        return self._snapshot

    def _node(self, node: Node) -> model.NodeSpec:
        """The same object for a node that is as it was."""
        facts = (node.allocatable, node.labels, node.is_cordoned, node.is_ready)
        known = self._nodes.get(node.name)
        if known is None or known[0] != facts:
            known = self._nodes[node.name] = facts, snapshot.node(node)
        return known[1]


def read_snapshot(cluster: Cluster, *, now: datetime) -> Snapshot:
    """The cluster as the rows say now, read afresh; without the nodes that the controller keeps for some pods."""
    cache = ClusterCache()
    cache.refresh(cluster, {}, now=now)
    return cache.snapshot(cluster)


def _around(state: model.ClusterState) -> tuple[object, ...]:
    """All that there is but the jobs."""
    return state.nodes, state.queues, state.tenant_quotas


def _is_late(job: Job, now: datetime) -> bool:
    """Its deadline has come."""
    return job.deadline_at is not None and job.deadline_at <= now and not job.is_final


def _of(pods: Iterable[Pod], nominated: Mapping[str, str]) -> dict[str, str]:
    """The nodes that are kept for some of these pods."""
    return {uid: nominated[uid] for uid in (str(pod.pk) for pod in pods) if uid in nominated} if nominated else {}
