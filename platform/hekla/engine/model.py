"""The input of a cycle: nodes, queues and pod groups with their pods at one instant.

All objects are immutable. `hekla.domain.resources` defines the units.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from hekla.domain.node_usage import MAX_AGE
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine.constraints import NO_CONSTRAINTS, PodConstraints, Selector
from hekla.engine.devices import Devices
from hekla.engine.storage import Storage

_MAX_USAGE_AGE = MAX_AGE.total_seconds()
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})
_NO_AMOUNTS = Resources()


def _empty_texts() -> Mapping[str, str]:
    """A shared mapping: there may be a million pods without labels."""
    return _NO_TEXTS


def _empty_amounts() -> Resources:
    return _NO_AMOUNTS


class PodStatus(StrEnum):
    """The status of a pod for the scheduler; Volcano's TaskStatus (`volcano-spec` §3.6)."""

    __hash__ = str.__hash__  # the hash of enumerations is slow Python code, and statuses are counted at every placement

    PENDING = "pending"
    ALLOCATED = "allocated"
    PIPELINED = "pipelined"
    BINDING = "binding"
    BOUND = "bound"
    RUNNING = "running"
    RELEASING = "releasing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Measured usage of a node, the mean of the last minutes: per cent of cpu and of memory.

    `whole`: the cpu (in thousandths) and memory (in bytes) of which they are; None: those that are allocatable.
    """

    cpu: float
    memory: float
    measured_at: float
    whole: tuple[float, float] | None = None

    def is_fresh(self, now: float) -> bool:
        """Whether it was measured in the last five minutes (`volcano-spec` §5.5)."""
        return self.measured_at > 0 and now - self.measured_at <= _MAX_USAGE_AGE


@dataclass(frozen=True, slots=True)
class NumaCell:
    """One NUMA cell of a node: its resources for pinned pods, and the free part of them."""

    allocatable: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class Numa:
    """How the kubelet of a node pins pods to NUMA cells."""

    topology_policy: str = "none"
    cpu_policy: str = "none"
    cells: tuple[NumaCell, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node. Without `pods` in `allocatable` it can hold none. `images`: size in bytes by name.

    `unschedulable`: only for pods that tolerate this. `is_ready` False: for no pods.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    images: Mapping[str, float] = field(default_factory=dict)
    unschedulable: bool = False
    is_ready: bool = True
    usage: NodeUsage | None = None
    numa: Numa | None = None


@dataclass(frozen=True, slots=True)
class NodeGroupAffinity:
    """The node groups that a queue's pods must, should, must not and should not use."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue. `capability`, `guarantee`, `deserved`: None if not set.

    `is_draining`: no more jobs are admitted, under every policy; admitted ones continue. `is_open` False: under a
    policy that follows Volcano, plugins allocate nothing more to it.
    """

    name: str
    weight: int = 1
    capability: Resources | None = None
    guarantee: Resources | None = None
    deserved: Resources | None = None
    reclaimable: bool = True
    priority: int = 0
    parent: str = ""
    is_open: bool = True
    is_draining: bool = False
    created_at: float = 0.0
    annotations: Mapping[str, str] = field(default_factory=dict)
    affinity: NodeGroupAffinity | None = None


@dataclass(frozen=True, slots=True)
class PodSpec:
    """One pod of the state: request, node and constraints.

    `limits`: the sum over all containers; `device_limits`: of each container that requests cards. If both are empty,
    cards are read from `request`. `namespace`: empty means that of its job. `nonzero_request`: cpu and memory as
    Kubernetes' scorers count them, with defaults for containers without requests; None: computed from `request`.
    """

    uid: str
    name: str
    role: str
    request: Resources
    status: PodStatus = PodStatus.PENDING
    node: str = ""
    priority: int = 1
    preemptable: bool = True
    never_preempts: bool = False
    priority_class: str = ""
    nominated_node: str = ""
    created_at: float = 0.0
    node_selector: Mapping[str, str] = field(default_factory=_empty_texts)
    tolerations: tuple[Toleration, ...] = ()
    constraints: PodConstraints = NO_CONSTRAINTS
    namespace: str = ""
    nonzero_request: Resources | None = None
    labels: Mapping[str, str] = field(default_factory=_empty_texts)
    annotations: Mapping[str, str] = field(default_factory=_empty_texts)
    claimed_devices: Resources = field(default_factory=_empty_amounts)
    """Claimed devices by class, named as in capabilities: `deviceclass/<class>`."""
    limits: Resources = field(default_factory=_empty_amounts)
    device_limits: tuple[Resources, ...] = ()
    scheduled_at: float = 0.0
    """When it was bound to its node; 0 if unknown."""
    has_more_labels: bool = False
    """Whether it has labels in its cluster that are not among `labels`."""


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """A network topology: pods must be in one hypernode of at most this tier; if not hard, as close as possible.

    The tier is set by number or name; with neither, or an unknown name, every tier is allowed.
    """

    is_hard: bool = True
    highest_tier: int | None = None
    highest_tier_name: str = ""


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """Pods that match the selector and have equal values of the labels `keys` form a sub-job.

    `size`: the minimum of a sub-job; `at_least`: how many sub-jobs must reach it. Without keys, or with selector None,
    the policy matches nothing.
    """

    name: str
    keys: tuple[str, ...] = ()
    selector: Selector | None = ()
    size: int = 1
    at_least: int = 0
    topology: NetworkTopology | None = None


@dataclass(frozen=True, slots=True)
class HyperNode:
    """Nodes close to each other in the network: the lower the tier, the closer. `nodes`: all nodes at any depth."""

    name: str
    tier: int
    nodes: frozenset[str]
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class PodGroupSpec:
    """A job: a pod group with its pods. `min_resources` None: enqueue always admits it."""

    uid: str
    name: str
    queue: str
    namespace: str = ""
    priority: int = 0
    min_available: int = 1
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    min_resources: Resources | None = None
    phase: GangPhase = GangPhase.PENDING
    preemptable: bool = False
    created_at: float = 0.0
    pods: tuple[PodSpec, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    topology: NetworkTopology | None = None
    sub_groups: tuple[SubGroupPolicy, ...] = ()
    owner: str = ""
    """The owner whose quota it counts for, in addition to the quota of its namespace (`TenantQuota`)."""


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """A Kubernetes quota of a namespace; 0 is a limit too. `used` None: the engine counts it."""

    namespace: str
    hard: Mapping[str, float]
    used: Resources | None = None


EACH_OWNER = "*"


@dataclass(frozen=True, slots=True)
class TenantQuota:
    """Limits on the resources that jobs hold together, under every policy; 0 is a limit too.

    It applies to all jobs of a namespace; with `owner`, to the jobs of this owner; with `EACH_OWNER`, to the jobs of
    each owner who has no quota of their own.
    """

    namespace: str
    limits: Mapping[str, float]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many more of its pods may be evicted now: of those in the namespace that the selector selects, or of `pods`,
    named by uid.
    """

    namespace: str
    selector: Selector
    allowed: int
    pods: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """The nodes of this scheduler if several share a cluster. `is_hard`: it uses no other nodes."""

    nodes: frozenset[str]
    is_hard: bool = True


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The input of one cycle. The order of nodes, queues and jobs breaks ties."""

    nodes: tuple[NodeSpec, ...]
    queues: tuple[QueueSpec, ...]
    jobs: tuple[PodGroupSpec, ...]
    last_shuffle_at: float | None = None
    """When pods were last evicted for a better placement; None: never."""
    storage: Storage = field(default_factory=Storage)
    devices: Devices = field(default_factory=Devices)
    hyper_nodes: tuple[HyperNode, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    tenant_quotas: tuple[TenantQuota, ...] = ()
    shard: Shard | None = None
