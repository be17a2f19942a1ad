"""The measures of alert rules. Each reads the value of every subject in its scope, in a bounded number of queries.

They read rows that the console has, and ask no cluster. A cluster whose rows are old is `lost`: it has no values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.selectors import TaskAllocation
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.errors import NotFound

MOST_SUBJECTS = 20_000
"""Subjects beyond this number are not read: no console has so many nodes."""


HeldByClusters = dict[tuple[int, ...], Sequence[TaskAllocation]]
"""What pods hold, by the row ids of their clusters: read once for all rules of an evaluation."""


class SubjectKind(StrEnum):
    """What the values of a measure are about."""

    CLUSTER = "cluster"
    NODE = "node"
    QUEUE = "queue"
    TENANT = "tenant"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class AlertSubject:
    """`key`: of its row, or `CLUSTER/NAME` of a node. `name`: for people. `cluster_id`: of its cluster, if any."""

    kind: SubjectKind
    key: str
    name: str
    cluster_id: int | None = None

    @property
    def text(self) -> str:
        """As rows store it."""
        return f"{self.kind}:{self.key}"


@dataclass(frozen=True, slots=True)
class AlertScope:
    """What a rule reads. `lost`: clusters (row ids) of which the rows are old. `label`: a key, and a value or None."""

    clusters: Sequence[Cluster]
    lost: frozenset[int]
    now: datetime
    tenant: Tenant | None = None
    queue: Queue | None = None
    label: tuple[str, str | None] | None = None
    window: timedelta = timedelta(minutes=10)
    known: HeldByClusters = field(default_factory=dict, compare=False, repr=False)

    def held(self, cluster_ids: Sequence[int]) -> Sequence[TaskAllocation]:
        """What pods hold in these clusters."""
        key = tuple(sorted(cluster_ids))
        if key not in self.known:
            self.known[key] = jobs.held(key)
        return self.known[key]

    @property
    def cluster_ids(self) -> list[int]:
        return [cluster.pk for cluster in self.clusters]

    @property
    def fresh(self) -> list[Cluster]:
        """The clusters that are not lost."""
        return [cluster for cluster in self.clusters if cluster.pk not in self.lost]

    def name_of(self, cluster_id: int) -> str:
        """The name of one of the clusters."""
        return next((cluster.name for cluster in self.clusters if cluster.pk == cluster_id), "")


@dataclass(frozen=True, slots=True)
class MeasuredValues:
    """The value of each subject. `lost`: clusters (row ids) without values."""

    values: Mapping[AlertSubject, float]
    lost: frozenset[int] = frozenset()


ValueSeries = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, slots=True)
class AlertMeasure:
    """A measure. `unit`: of its values, for people; `changes_by_time`: also without an event.

    `for_tenants`: rules of tenants can use it. `has_window`: it counts in the rule's window. `past`: the changes of
    each value since then, oldest first, if the log has them.
    """

    name: str
    label: str | Promise
    unit: str | Promise
    subject: SubjectKind
    read: Callable[[AlertScope], MeasuredValues]
    changes_by_time: bool = False
    for_tenants: bool = False
    has_window: bool = False
    takes_label: bool = False
    takes_queue: bool = False
    past: Callable[[AlertScope, datetime], Mapping[AlertSubject, ValueSeries]] | None = field(default=None)


def scope_of(
    spec: AlertRuleSpec, tenant: Tenant | None, *, now: datetime, held: HeldByClusters | None = None
) -> AlertScope:
    """What the rule reads. Without a cluster or a queue: all clusters that are not simulated. Raises NotFound.

    `held`: what was read for other scopes.
    """
    queue = _queue(spec.queue) if spec.queue else None
    wanted = queue.cluster.name if queue else spec.cluster
    found = [
        (cluster, lease)
        for cluster, lease in clusters.with_leases()
        if cluster.name == wanted or not (wanted or cluster.is_simulated)
    ]
    if wanted and not found:
        raise NotFound(_("Unknown cluster."))
    lost = frozenset(
        cluster.pk
        for cluster, lease in found
        if cluster.is_paused
        or not _is_reachable(cluster)
        or leases.unrenewed_for(cluster, lease, now=now) >= leases.SILENT_AFTER
    )
    key, equals, value = spec.node_label.partition("=")
    label = (key.strip(), value.strip() if equals else None) if spec.node_label else None
    known = {} if held is None else held
    return AlertScope([cluster for cluster, _lease in found], lost, now, tenant, queue, label, spec.window, known)


def _queue(name: str) -> Queue:
    found = queues.all_queues().select_related("cluster").filter(name=name).first()
    if found is None:
        raise NotFound(_("Unknown queue."))
    return found


def _is_reachable(cluster: Cluster) -> bool:
    health = getattr(cluster, "health", None)
    return health is None or bool(health.is_reachable)


def of_cluster(cluster: Cluster) -> AlertSubject:
    """A cluster as a subject."""
    return AlertSubject(SubjectKind.CLUSTER, str(cluster.pk), cluster.name, cluster.pk)
