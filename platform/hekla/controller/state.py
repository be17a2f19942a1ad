"""The state of a controller between reconciliations. A new process starts without it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hekla.apps.clusters.models import NodeFacts, UsageFacts
from hekla.apps.jobs.services.observations import Sighting
from hekla.backends.base import PodKey
from hekla.backends.external_pods import DisplayedQueues
from hekla.backends.tenancy import TenantOrder


@dataclass(frozen=True, slots=True)
class RefusedBind:
    """Since when binds of a pod are refused (monotonic clock), and for how long they are tried to one node."""

    since: float
    patience_seconds: float


@dataclass
class ExternalPodState:
    """State of external pods.

    - `of`: the backend facet that lists them.
    - `groups`: by uid, the group in which a pod was first recorded; None if its job was deleted.
    - `looked`: the namespaces that were listed at the last reconciliation.
    - `recorded`: by group, what was last recorded. `refused`: by group, why it is not recorded.
    - `bound`: by uid, when the pod was bound. `refused_binds`: by uid, binds that the cluster refused.
    - `reported`: by uid, the kind of reason last written to the pod.
    """

    of: object = None
    has_started: bool = False
    groups: dict[str, str | None] = field(default_factory=dict)
    looked: set[str] = field(default_factory=set)
    recorded: dict[str, object] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    refused_binds: dict[str, RefusedBind] = field(default_factory=dict)
    reported: dict[str, object] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass
class DisplayedQueueState:
    """The queues last displayed in the cluster: by which facet, which they were, when, and the last error."""

    by: DisplayedQueues | None = None
    stamp: object = None
    at: float = float("-inf")
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProtectedPod:
    """A pod that may not be evicted: why, and until when it is not tried again (monotonic clock)."""

    why: str
    until: float


@dataclass
class StartDelay:
    """Pods of a job that the cluster refuses for now: since when (monotonic clock), and the reasons already logged."""

    since: float
    reported: set[str] = field(default_factory=set)


@dataclass(slots=True)
class UsageMean:
    """The mean usage of a node up to `at`, in per cent, and what was last stored of it.

    `write_after`: the age at which its row is written again although it did not change.
    """

    cpu: float
    memory: float
    at: datetime
    write_after: timedelta
    stored: UsageFacts | None = None


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A node as last recorded, without its images, and the version of its row then; None if it has no row."""

    facts: NodeFacts
    version: str | None


@dataclass
class ReconcilerState:
    """What one process caches about a cluster between reconciliations, to save work.

    - `cursor`, `known_pods`: the position in the backend's changes, and the pods that the backend has.
    - `postponed`: by job, observations that a fault of the job kept from being recorded.
    - `nominated`: node by pod, where pods were evicted to make room for it. Without this the engine still finds the
      room, perhaps for another pod.
    - `led_at`: when the lease was last confirmed, on the monotonic clock.
    - `delegated`: by job, the state last recorded of jobs that the cluster's own scheduler runs.
    - `external_pods`: the state of external pods.
    - `protected`: by row, pods that a disruption budget protects.
    - `tenancy`: by tenant, the order last applied and until when it is valid, on the monotonic clock;
      `has_removed_others`: objects of tenants without jobs were removed.
    - `nodes`: by name, the nodes as last recorded.
    - `usage`: by name, the mean usage of nodes, and what was last stored of it.
    - `devices`, `storage`: the devices and the volumes, with their claims, last recorded. `needs_devices`: whether the
      policy needs devices.
    - `budgets`: the disruption budgets last recorded; `needs_budgets`: whether the policy reads them.
    - `runtime_classes`: those last recorded.
    - `start_delays`: by row, jobs with pods that the cluster refused at their last start.
    """

    cursor: str | None = None
    known_pods: set[PodKey] = field(default_factory=set)
    postponed: dict[str, list[Sighting]] = field(default_factory=dict)
    nominated: dict[str, str] = field(default_factory=dict)
    led_at: float = float("-inf")
    delegated: dict[int, object] = field(default_factory=dict)
    external_pods: ExternalPodState = field(default_factory=ExternalPodState)
    protected: dict[int, ProtectedPod] = field(default_factory=dict)
    tenancy: dict[str, tuple[TenantOrder, float]] = field(default_factory=dict)
    has_removed_others: bool = False
    devices: object = None
    storage: object = None
    needs_devices: bool = False
    budgets: object = None
    needs_budgets: bool = False
    runtime_classes: object = None
    start_delays: dict[int, StartDelay] = field(default_factory=dict)
    displayed_queues: DisplayedQueueState = field(default_factory=DisplayedQueueState)
    nodes: dict[str, RecordedNode] = field(default_factory=dict)
    usage: dict[str, UsageMean] = field(default_factory=dict)

    def protected_pods(self, moment: float) -> frozenset[int]:
        """The rows of the pods that are not to be evicted now. `moment`: on the monotonic clock."""
        return frozenset(pk for pk, one in self.protected.items() if one.until > moment)
