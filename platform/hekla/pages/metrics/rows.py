"""Metrics from the database at the time of a scrape, with a bounded number of queries for any number of rows."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import DatabaseError
from prometheus_client import Metric
from prometheus_client.registry import Collector

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster, Lease, Node
from hekla.apps.event_log import selectors as outbox
from hekla.apps.jobs import selectors as jobs
from hekla.apps.queues import selectors as queues
from hekla.domain.phases import FINAL_POD_PHASES, JobPhase, PodPhase
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.lib.caching import CachedValue
from hekla.lib.exposition import Labels, gauge, resource_gauges
from hekla.pages.queues import figures
from hekla.pages.queues.figures import QueueView
from hekla.scheduling import occupancy
from hekla.scheduling.occupancy import Occupancy

log = logging.getLogger(__name__)
_CACHE_SECONDS = 5.0
_LOST_CACHE_SECONDS = 300.0
"""Longer, because counting lost events reads the whole event log."""
_MOST_QUEUES = 500
"""Only this many queues, the first by name, have their own samples. The sums of clusters include all queues."""
_MOST_CLUSTERS = 100
"""Only this many clusters, the oldest ones, have samples."""
_NODE_STATES = ("ready", "not_ready", "cordoned")
_LIVING_PODS = [phase for phase in PodPhase if phase not in FINAL_POD_PHASES]
Samples = Iterable[tuple[Labels, float]]
_lost = CachedValue(outbox.lost, _LOST_CACHE_SECONDS)


@dataclass(frozen=True, slots=True)
class Scrape:
    """The data of one scrape. Jobs are counted by queue and phase, pods by cluster and phase."""

    now: datetime
    clusters: Sequence[tuple[Cluster, Lease | None]]
    whole: Occupancy
    queues: Sequence[QueueView]
    jobs: Mapping[tuple[int, str], int]
    pods: Mapping[tuple[int, str], int]
    oldest: Mapping[int, datetime]
    lost: int

    @classmethod
    def read(cls) -> "Scrape":
        """The current data."""
        whole = occupancy.now()
        return cls(
            clock.now(),
            clusters.with_leases()[:_MOST_CLUSTERS],
            whole,
            figures.views_of(queues.all_queues(), whole),
            {(queue, phase): count for queue, phase, count in jobs.counts_by_queue()},
            {(cluster, phase): count for cluster, phase, count in jobs.living_pods_by_cluster()},
            jobs.oldest_waits(),
            _lost(),
        )

    def by_queue(self) -> Iterator[tuple[tuple[str, str], QueueView]]:
        """The queues that have their own samples, with the labels of each."""
        names = {cluster.pk: cluster.name for cluster, _lease in self.clusters}
        known = (view for view in self.queues if view.queue.cluster_id in names)
        return (((names[view.queue.cluster_id], view.queue.name), view) for view in islice(known, _MOST_QUEUES))


@dataclass(frozen=True, slots=True)
class Family:
    """A gauge, and the function that gets its samples from the data of a scrape."""

    name: str
    text: str
    labels: Labels
    samples: Callable[[Scrape], Samples]

    def metrics(self, instant: Scrape) -> Iterable[Metric]:
        """The gauge."""
        return [gauge(self.name, self.text, self.labels, self.samples(instant))]


@dataclass(frozen=True, slots=True)
class Amounts:
    """A family of gauges of resource amounts."""

    name: str
    text: str
    labels: Labels
    samples: Callable[[Scrape], Iterable[tuple[Labels, Resources]]]

    def metrics(self, instant: Scrape) -> Iterable[Metric]:
        """One gauge for each unit."""
        found = ((labels, resources.in_base_units()) for labels, resources in self.samples(instant))
        return resource_gauges(self.name, self.text, self.labels, found)


def _each(
    value: Callable[[Scrape, Cluster, Lease | None], float],
) -> Callable[[Scrape], Iterable[tuple[Labels, float]]]:
    return lambda it: (((cluster.name,), value(it, cluster, lease)) for cluster, lease in it.clusters)


def _kinds(instant: Scrape) -> Samples:
    return (((cluster.name, cluster.kind), 1) for cluster, _lease in instant.clusters)


def _nodes(instant: Scrape) -> Samples:
    counts = Counter((node.cluster_id, _state(node)) for node, _allocatable in instant.whole.nodes)
    for cluster, _lease in instant.clusters:
        yield from (((cluster.name, state), counts[cluster.pk, state]) for state in _NODE_STATES)


def _state(node: Node) -> str:
    """The node's state. Cordoned comes first, because an admin set it and knows why."""
    return "cordoned" if node.is_cordoned else "ready" if node.is_ready else "not_ready"


def _allocatable(instant: Scrape) -> Iterable[tuple[Labels, Resources]]:
    found = figures.by_cluster(instant.whole)
    return (((cluster.name,), found.get(cluster.pk, Resources())) for cluster, _lease in instant.clusters)


def _allocated(instant: Scrape) -> Iterable[tuple[Labels, Resources]]:
    held = {cluster.pk: Counter[str]() for cluster, _lease in instant.clusters}
    for (cluster_id, _node), resources in instant.whole.machines.items():
        if cluster_id in held:
            held[cluster_id].update(resources)
    return (((cluster.name,), Resources(held[cluster.pk])) for cluster, _lease in instant.clusters)


def _jobs(instant: Scrape) -> Samples:
    counts: Counter[tuple[int, str]] = Counter()
    for view in instant.queues:
        for phase in JobPhase:
            counts[view.queue.cluster_id, phase] += instant.jobs.get((view.queue.pk, phase), 0)
    for cluster, _lease in instant.clusters:
        yield from (((cluster.name, phase), counts[cluster.pk, phase]) for phase in JobPhase)


def _pods(instant: Scrape) -> Samples:
    for cluster, _lease in instant.clusters:
        yield from (((cluster.name, phase), instant.pods.get((cluster.pk, phase), 0)) for phase in _LIVING_PODS)


def _queue_jobs(instant: Scrape) -> Samples:
    for labels, view in instant.by_queue():
        yield from (((*labels, phase), instant.jobs.get((view.queue.pk, phase), 0)) for phase in JobPhase)


def _oldest(instant: Scrape) -> Samples:
    for labels, view in instant.by_queue():
        yield labels, (instant.now - instant.oldest.get(view.queue.pk, instant.now)).total_seconds()


_CLUSTER, _QUEUE = ("cluster",), ("cluster", "queue")
FAMILIES: tuple[Family | Amounts, ...] = (
    Family("hekla_cluster_info", "Kind of each cluster.", ("cluster", "kind"), _kinds),
    Family("hekla_cluster_paused", "1 if scheduling is paused.", _CLUSTER, _each(lambda _it, one, _l: one.is_paused)),
    Family(
        "hekla_controller_lease_held",
        "1 if a controller holds the lease of the cluster.",
        _CLUSTER,
        _each(lambda it, _one, lease: leases.is_held(lease, now=it.now)),
    ),
    Family(
        "hekla_controller_lease_age_seconds",
        "Seconds since a controller last renewed the lease. Each reconciliation renews it.",
        _CLUSTER,
        _each(lambda it, one, lease: leases.unrenewed_for(one, lease, now=it.now).total_seconds()),
    ),
    Family("hekla_nodes", "Nodes. Cordoned nodes count as cordoned only.", ("cluster", "state"), _nodes),
    Amounts("hekla_cluster_allocatable", "Allocatable resources of all nodes of a cluster", _CLUSTER, _allocatable),
    Amounts("hekla_cluster_allocated", "Resources allocated to pods in a cluster", _CLUSTER, _allocated),
    Family("hekla_jobs", "Jobs, without deleted ones.", ("cluster", "phase"), _jobs),
    Family("hekla_pods", "Unfinished pods.", ("cluster", "phase"), _pods),
    Family("hekla_queue_jobs", "Jobs of a queue, without deleted ones.", (*_QUEUE, "phase"), _queue_jobs),
    Family(
        "hekla_queue_waiting_jobs",
        "Pending jobs without allocated resources.",
        _QUEUE,
        lambda it: ((labels, view.use.waiting) for labels, view in it.by_queue()),
    ),
    Family("hekla_queue_oldest_wait_seconds", "Waiting time of the oldest pending job.", _QUEUE, _oldest),
    Amounts(
        "hekla_queue_allocated",
        "Resources allocated to a queue",
        _QUEUE,
        lambda it: ((labels, view.use.used) for labels, view in it.by_queue()),
    ),
    Amounts(
        "hekla_queue_capability",
        "Resource limit of a queue, by default all of its cluster",
        _QUEUE,
        lambda it: ((labels, view.limit) for labels, view in it.by_queue()),
    ),
    Family("hekla_event_log_last_number", "Number of the newest event.", (), lambda it: [((), it.whole.number)]),
    Family("hekla_event_log_lost_numbers", "Missing events that were not purged.", (), lambda it: [((), it.lost)]),
)


class Rows(Collector):
    """The gauges of `FAMILIES`, read at most every five seconds for any number of scrapes.

    If the database does not answer, only `hekla_database_up` is exported.
    """

    def __init__(self) -> None:
        self._cache = CachedValue(_read, _CACHE_SECONDS)

    def collect(self) -> Iterable[Metric]:
        """All gauges."""
        return self._cache()

    def forget(self) -> None:
        """Clear the caches."""
        self._cache.clear()
        _lost.clear()


def _read() -> list[Metric]:
    try:
        instant = Scrape.read()
    except DatabaseError as error:
        log.warning("cannot read the rows for the metrics now: %s", error)
        return [_up(0)]
    return [_up(1), *(metric for family in FAMILIES for metric in family.metrics(instant))]


def _up(value: float) -> Metric:
    return gauge("hekla_database_up", "1 if the database answered.", (), [((), value)])


rows = Rows()
