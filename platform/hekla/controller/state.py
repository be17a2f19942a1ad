"""What a controller remembers from one reconciliation to the next. A new process starts without it."""

from dataclasses import dataclass, field

from hekla.backends.base import PodKey
from hekla.backends.external_pods import DisplayedQueues
from hekla.backends.tenancy import TenantOrder


@dataclass
class ExternalPodState:
    """What is remembered of pods that others made.

    - `of`: the backend facet that lists them.
    - `groups`: by uid, the group in which a pod was first recorded.
    - `looked`: the namespaces that were listed.
    - `recorded`: by group, what was last recorded. `refused`: by group, why it is not recorded.
    - `bound`: by uid, when the pod was bound. `reported`: by uid, the kind of reason last written to the pod.
    """

    of: object = None
    has_started: bool = False
    groups: dict[str, str | None] = field(default_factory=dict)
    looked: set[str] = field(default_factory=set)
    recorded: dict[str, object] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
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


@dataclass
class ReconcilerState:
    """What one process remembers of a cluster from one reconciliation to the next, to save work.

    - `cursor`, `known_pods`: how far the backend was observed, and the pods that it is known to have.
    - `nominated`: node by pod, where pods were evicted to make room for it. Without this the engine still finds the
      room, perhaps for another pod.
    - `led_at`: when the lease was last seen to be ours, on the monotonic clock.
    - `delegated`: by job, what was last recorded of jobs that the cluster's own scheduler runs.
    - `external_pods`: the same of pods that others made.
    - `protected`: by row, pods that a disruption budget protects.
    - `tenancy`: by tenant, what was last applied and until when it need not be applied again, on the monotonic clock;
      `has_removed_others`: objects of tenants without jobs were looked for.
    - `start_delays`: by row, jobs some of whose pods the cluster did not take when they were last started.
    """

    cursor: str | None = None
    known_pods: set[PodKey] = field(default_factory=set)
    nominated: dict[str, str] = field(default_factory=dict)
    led_at: float = float("-inf")
    delegated: dict[int, object] = field(default_factory=dict)
    external_pods: ExternalPodState = field(default_factory=ExternalPodState)
    protected: dict[int, ProtectedPod] = field(default_factory=dict)
    tenancy: dict[str, tuple[TenantOrder, float]] = field(default_factory=dict)
    has_removed_others: bool = False
    start_delays: dict[int, StartDelay] = field(default_factory=dict)
    displayed_queues: DisplayedQueueState = field(default_factory=DisplayedQueueState)
