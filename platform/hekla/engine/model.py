"""What the engine is told: nodes, queues and jobs with their tasks, as they stand at one instant.

Names are Volcano's: a *Job* here is a PodGroup (a gang), a *Task* is one pod. `hekla.domain.resources` gives the units.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.conditions import NOTHING, Conditions, Selector
from hekla.engine.devices import Devices
from hekla.engine.storage import Storage

_MAX_USAGE_AGE = 300.0
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})
_NO_AMOUNTS = Resources()


def _no_texts() -> Mapping[str, str]:
    """One object for all who have none: there may be a million of them."""
    return _NO_TEXTS


def _no_amounts() -> Resources:
    return _NO_AMOUNTS


class TaskStatus(StrEnum):
    """Where a pod stands for the scheduler (`volcano-spec` §3.6)."""

    __hash__ = str.__hash__  # that of enumerations is in Python, and statuses are counted at every placement

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
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What a machine really uses, as a mean over ten minutes: per cent of its cpu and of its memory."""

    cpu: float
    memory: float
    measured_at: float

    def is_fresh(self, now: float) -> bool:
        """Whether it may be relied on: it was measured in the last five minutes (`volcano-spec` §5.5)."""
        return self.measured_at > 0 and now - self.measured_at <= _MAX_USAGE_AGE


@dataclass(frozen=True, slots=True)
class NumaCell:
    """One NUMA node of a machine: what it has for pods that are bound to it, and what of that is free."""

    allocatable: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class Numa:
    """How the kubelet of a machine binds pods to NUMA nodes."""

    topology_policy: str = "none"
    cpu_policy: str = "none"
    cells: tuple[NumaCell, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A machine. `allocatable` must hold `pods`: a node without it can hold none. `images`: bytes of those it has."""

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    images: Mapping[str, float] = field(default_factory=dict)
    unschedulable: bool = False
    usage: NodeUsage | None = None
    numa: Numa | None = None


@dataclass(frozen=True, slots=True)
class NodeGroupAffinity:
    """The node groups that a queue's pods must, may rather, must not and may rather not use."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A share of the cluster. `capability`, `guarantee`, `deserved`: None where no bound was set.

    `is_draining`: it lets no more jobs in, whatever plugins say; those that are in go on. (Where `is_open` is False
    plugins give it nothing more at all, as in Volcano.)
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
class Task:
    """One pod: what it asks for, where it is, and what it may land on.

    `limits`: of all containers together; `device_limits`: of each container that asks for cards. Where both are empty
    cards are read from the request.
    `namespace`: that of its job where empty. `counted`: the cpu and memory that Kubernetes' scorers reckon with, where
    containers that name none count for a little; None: reckoned from `request`, as one container.
    """

    uid: str
    name: str
    role: str
    request: Resources
    status: TaskStatus = TaskStatus.PENDING
    node: str = ""
    priority: int = 1
    preemptable: bool = True
    never_preempts: bool = False
    priority_class: str = ""
    nominated_node: str = ""
    created_at: float = 0.0
    node_selector: Mapping[str, str] = field(default_factory=_no_texts)
    tolerations: tuple[Toleration, ...] = ()
    conditions: Conditions = NOTHING
    namespace: str = ""
    counted: Resources | None = None
    labels: Mapping[str, str] = field(default_factory=_no_texts)
    annotations: Mapping[str, str] = field(default_factory=_no_texts)
    claims: Resources = field(default_factory=_no_amounts)
    """Devices claimed by class, under the names by which queues bound them: `deviceclass/<class>`."""
    limits: Resources = field(default_factory=_no_amounts)
    device_limits: tuple[Resources, ...] = ()
    scheduled_at: float = 0.0
    """When it got its node; 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How close together pods must be: in one hypernode of at most this tier. Not hard: as close as it goes.

    The tier is given by number or by name; neither, or a name that no tier has: any tier.
    """

    is_hard: bool = True
    highest_tier: int | None = None
    highest_tier_name: str = ""


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """Pods that the selector matches, with equal values of the labels `keys`, form a gang within the gang.

    `size`: its minimum; `at_least`: how many such groups must have theirs. Without keys, and with the selector None, it
    matches nothing.
    """

    name: str
    keys: tuple[str, ...] = ()
    selector: Selector | None = ()
    size: int = 1
    at_least: int = 0
    topology: NetworkTopology | None = None


@dataclass(frozen=True, slots=True)
class HyperNode:
    """Nodes that are close to each other in the network; the lower the tier, the closer. `nodes`: all below it."""

    name: str
    tier: int
    nodes: frozenset[str]
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A gang. `min_resources` None means that no least amount was stated (enqueue then always admits)."""

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
    tasks: tuple[Task, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    topology: NetworkTopology | None = None
    sub_groups: tuple[SubGroupPolicy, ...] = ()
    owner: str = ""
    """Who counts for it beside its namespace (`Bound`)."""


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """What the jobs of a namespace may ask for together; zero is a bound too.

    `used` None: the engine counts it itself.
    """

    namespace: str
    hard: Mapping[str, float]
    used: Resources | None = None


EACH = "*"


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that jobs may hold together of what it names, whatever the policy says; zero is a bound too.

    Those of all of a namespace; or of one `owner` there; or, for `EACH`, of every owner who has no bound of their own.
    """

    namespace: str
    most: Mapping[str, float]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many more pods of a kind may be evicted now."""

    namespace: str
    selector: Selector
    allowed: int


@dataclass(frozen=True, slots=True)
class Shard:
    """The nodes of this scheduler where several share a cluster. `is_hard`: it uses no others."""

    nodes: frozenset[str]
    is_hard: bool = True


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Everything one cycle decides on. Order is meaningful: it is the canonical order of ties."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    jobs: tuple[Job, ...]
    shuffled_at: float | None = None
    """When tasks were last evicted in order to be better placed; None: not yet."""
    storage: Storage = field(default_factory=Storage)
    devices: Devices = field(default_factory=Devices)
    hyper_nodes: tuple[HyperNode, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    bounds: tuple[Bound, ...] = ()
    shard: Shard | None = None
