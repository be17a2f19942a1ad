"""The contract between the controller and whatever runs pods.

A `Backend` has a core that every kind implements, and facets: attributes that are None if the cluster does not support
them. A `PodKey` names each pod, so a second start of a pod finds it started. A backend stores what it needs to answer
after everything else has restarted; the controller stores the history.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from hekla.backends.log_chunk import LogChunk
from hekla.backends.streams import PodCommand, Stream
from hekla.domain.addresses import Replica
from hekla.domain.cards import HeldCard, NodeCard
from hekla.domain.cluster_objects import ObjectFacts
from hekla.domain.network_topology import HyperNodeLevel
from hekla.domain.node_usage import CardMetrics
from hekla.domain.numa import NumaTopology
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.domain.runtime_settings import NO_SETTINGS, RuntimeSettings
from hekla.domain.taints import Taint
from hekla.domain.volumes import VolumeMount, VolumeSpec

if TYPE_CHECKING:
    from hekla.backends.delegated import DelegatedScheduling
    from hekla.backends.external_pods import DisplayedQueues, ExternalPods
    from hekla.backends.files import PodFiles
    from hekla.backends.frozen import FrozenFolders
    from hekla.backends.tenancy import Tenancy
    from hekla.backends.uploads import WritableFiles


@dataclass(frozen=True, slots=True)
class PodKey:
    """One attempt of one replica: the same key always means the same pod.

    `tenant`: its short name, for backends that separate tenants. It locates the pod and does not identify it.
    """

    job: str
    task: str
    index: int
    attempt: int
    tenant: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """A name that is safe in file systems and host names."""
        return f"{self.job}-{self.task}-{self.index}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A named set of packages. Without requirements: the console's own interpreter."""

    name: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodPriority:
    """The priority class that a job names, and the value of that class when the job was submitted."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class PodOrder:
    """Everything that a backend needs to start a pod. `address`: from `PodRunner.address`.

    `command`: empty for the image's own, and then `args` replaces the image's arguments unless it is empty.
    `secrets`: files like `files` that only the pod may read; no record that others read contains them.
    `mounts`: folders of `files`, by the absolute path at which a pod with its own root file system finds them too.
    `volumes`: the volumes of the job that `volume_mounts` names.
    `has_peers`: other pods of the job know its address. `is_closed`: only those may connect to it.
    `priority`: for nodes that choose which pod to end; None if the job names no class. `ports`: by name, the ports for
    users outside the cluster, if the cluster routes them to pods.
    `labels`: those of the task. `placement`: its constraints, as fields of a Kubernetes pod (`domain.placement`).
    `cards`: those of the node that the pod gets, if the node reports its cards. `annotations`: how the scheduler writes
    them to a Kubernetes pod. `settings`: what the pod asks of its node. A backend that runs pods must honour or refuse
    them. `freezes`: its working folder must outlive it if it fails (`frozen`). `frozen`: the ended pod of the same
    tenant whose working folder and volumes it gets, as they are.
    """

    key: PodKey
    node: str
    command: tuple[str, ...]
    address: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    environment: EnvironmentSpec | None = None
    image: str = ""
    working_dir: str = ""
    grace_seconds: float = 30.0
    mounts: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[VolumeSpec] = ()
    volume_mounts: Sequence[VolumeMount] = ()
    has_peers: bool = True
    is_closed: bool = False
    priority: PodPriority | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    cards: Sequence[HeldCard] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    settings: RuntimeSettings = NO_SETTINGS
    freezes: bool = False
    frozen: PodKey | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The present state of one pod at the backend. Recording it twice changes nothing.

    `cpus`: those that the pod has for itself, as Linux writes them (`0-3,8`); empty: none, or not known.
    """

    key: PodKey
    phase: PodPhase
    at: datetime
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    cpus: str = ""


@dataclass(frozen=True, slots=True)
class Observations:
    """States of pods that changed since a cursor. `complete`: these are all pods, so a missing one is gone."""

    pods: Sequence[Observation]
    cursor: str
    complete: bool


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as the backend reports it. `images`: sizes in bytes by name, the largest first.

    `cards`: those that the engine or the controller may give to pods; none if the cluster gives them itself.
    `hypernodes`: those that hold the node, if the cluster has objects for them. `numa`: None if unknown.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    message: str = ""
    taints: Sequence[Taint] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    cards: Sequence[NodeCard] = ()
    hypernodes: Sequence[HyperNodeLevel] = ()
    numa: NumaTopology | None = None


@dataclass(frozen=True, slots=True)
class PodMetrics:
    """What a pod has used up to an instant.

    `cpu_seconds`: of all its processes since its start, ended ones included; it never falls. `gpus_busy`: how many GPUs
    it kept busy recently (1.5 of 2). GPU figures are None if none of its processes is known to use a GPU.
    """

    key: PodKey
    at: datetime
    cpu_seconds: float
    memory_bytes: int
    gpus_busy: float | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """What all processes of a node use, those outside of pods included, as measured at an instant.

    `cpu`, `memory`: per cent of `whole`, the node's CPU and memory with the parts that pods cannot request.
    """

    name: str
    at: datetime
    cpu: float
    memory: float
    whole: Resources
    cards: Sequence[CardMetrics] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything at a backend now, for the audit.

    `alive`: running pods. `present`: jobs with more than logs there. `logged`: jobs with anything there.
    """

    alive: frozenset[PodKey]
    present: frozenset[str]
    logged: frozenset[str]


class HealthProblem(StrEnum):
    """Why a cluster cannot be reached."""

    UNUSABLE = "unusable"  # the configuration or the credentials can never work
    SILENT = "silent"  # no answer
    UNTRUSTED = "untrusted"  # the server cannot prove its identity
    NOT_LET_IN = "not_let_in"  # the server rejects the credentials
    REFUSED = "refused"  # the server answers with an error


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a cluster, as it reports it. Without a problem, the cluster can be reached.

    `detail`: the message of the server or the client about the problem. `missing`: permissions that Hekla needs and
    does not have, each as `verb resource`, followed by ` *` if it is needed in the whole cluster, or by the name of a
    namespace of others. `has_namespace`: None if not known. `kubelets`: the number of nodes by version.
    `topology_faults`: what is wrong with objects that define hypernodes, each as `problem name`. `metrics_fault`: why
    the server of metrics that is configured does not answer; empty: it does, or there is none.
    """

    problem: HealthProblem | None = None
    detail: str = ""
    version: str = ""
    has_namespace: bool | None = None
    missing: tuple[str, ...] = ()
    kubelets: Mapping[str, int] = field(default_factory=dict)
    topology_faults: tuple[str, ...] = ()
    metrics_fault: str = ""


class BackendError(Exception):
    """The backend cannot do this now; the same call may succeed later."""


class StartRefused(BackendError):
    """This pod can never start here (for example, its environment cannot be built); the message says why."""


class StartDelayed(BackendError):
    """A limit of the cluster itself has no room for this pod now; the message names it. A later start may succeed."""


class VolumePending(StartDelayed):
    """A volume for this pod is being made for its node. A later start succeeds once it is there."""


class NodeUnsuitable(BackendError):
    """This pod can never start on its node, but may on others: something that it needs was elsewhere meanwhile."""


class UnknownPod(BackendError):
    """This backend never had a pod with this key."""


class PodRunner(Protocol):
    """Starts and stops single pods on the nodes that the engine chose. All calls are idempotent."""

    def address(self, replica: Replica) -> str:
        """The address of this replica for other pods of its job, the same in all attempts; known before it starts."""

    def start_many(
        self, orders: Iterable[PodOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Start each pod unless it was already started or stopped. Yields each order with its error, in any order.

        The iterable is read lazily. `heartbeat` is called about once a second; an exception from it ends the iteration,
        and no further start begins. StartRefused: this pod can never start here. NodeUnsuitable: not on its node.
        """

    def stop_many(
        self, requests: Iterable[tuple[PodKey, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Stop each pod, with a reason; kill it after its grace period. Ended pods are left alone.

        A pod that was not started yet never runs: it fails with the reason Stopped. Yields and calls like `start_many`.
        """


class Exec(Protocol):
    """Commands and terminals in running pods."""

    def run(
        self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False
    ) -> AbstractAsyncContextManager[PodCommand]:
        """Run a command in the pod, beside the pod's own. Raises BackendError, UnknownPod."""


class PortForwarding(Protocol):
    """Connections to servers in running pods."""

    def connect(self, key: PodKey, port: int) -> AbstractAsyncContextManager[Stream]:
        """Connect to this port of the pod. Raises BackendError, UnknownPod."""


class Metrics(Protocol):
    """Measures what running pods use."""

    def measure(self, keys: Sequence[PodKey]) -> Sequence[PodMetrics]:
        """What these pods use now, without pods that do not run or cannot be measured. Raises BackendError."""


class NodeMeter(Protocol):
    """Measures what nodes use."""

    def measure_nodes(self) -> Sequence[NodeMetrics]:
        """The present usage of the nodes that can be measured, without delay: perhaps as measured half a minute ago.

        Raises BackendError.
        """


class DisruptionBudgets(Protocol):
    """Limits how many pods may be disrupted at once."""

    def list_budgets(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:
        """All budgets for pods of these tenants, named by their short names; the very same object as before if none has
        changed.

        The spec has a selector. Either the status says how many disruptions are allowed, or the spec has
        `minAvailable` or `maxUnavailable`.
        """

    def protected(self, keys: Sequence[PodKey], *, heartbeat: Callable[[], None]) -> Mapping[PodKey, str]:
        """The pods among these that a budget protects now, with the server's message.

        `heartbeat` as in `PodRunner.start_many`.
        """


class ClusterObjects(Protocol):
    """Objects of the cluster that the engine reads: devices or volumes, and claims to them."""

    def list_objects(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:
        """All of them that matter to jobs of these tenants, named by their short names; the very same object as before
        if none has changed.
        """


class RuntimeClasses(Protocol):
    """Runtime classes that jobs may name."""

    def list_runtime_classes(self) -> Sequence[ObjectFacts]:
        """All of them, as `domain.runtime_classes` reads them; the very same object as before if none has changed."""


class Backend(ABC):
    """One cluster. All methods are idempotent.

    A facet is None if the cluster does not support it. Exactly one of `runner` and `delegated` is not None.
    """

    @property
    def runner(self) -> PodRunner | None:
        """Starts and stops the pods that the engine places. None: the cluster's own scheduler does it (`delegated`)."""
        return None

    @property
    def delegated(self) -> "DelegatedScheduling | None":
        """Jobs that the cluster's own scheduler runs."""
        return None

    @property
    def exec(self) -> Exec | None:
        """Commands and terminals in pods."""
        return None

    @property
    def port_forwarding(self) -> PortForwarding | None:
        """Connections to ports of pods."""
        return None

    def console_url(self, public: str) -> str:
        """The address at which pods reach the console, whose public one is `public`. Empty: they do not reach it."""
        return public

    @property
    def files(self) -> "PodFiles | None":
        """Files that pods wrote."""
        return None

    @property
    def uploads(self) -> "WritableFiles | None":
        """Files that people write into the folders of pods."""
        return None

    @property
    def frozen(self) -> "FrozenFolders | None":
        """Working folders that outlive their pods."""
        return None

    @property
    def metrics(self) -> Metrics | None:
        """What pods use."""
        return None

    @property
    def node_meter(self) -> NodeMeter | None:
        """What nodes use."""
        return None

    @property
    def tenancy(self) -> "Tenancy | None":
        """What separates tenants in the cluster: namespaces, network policies, quotas."""
        return None

    @property
    def budgets(self) -> DisruptionBudgets | None:
        """Limits on how many pods may be disrupted at once."""
        return None

    @property
    def objects(self) -> ClusterObjects | None:
        """Devices of the cluster, and claims to them. It is asked once a job or the policy needs them."""
        return None

    @property
    def storage(self) -> ClusterObjects | None:
        """Volumes of the cluster, and claims to them. It is asked once a job mounts a claim."""
        return None

    @property
    def runtime_classes(self) -> RuntimeClasses | None:
        """Runtime classes that jobs may name."""
        return None

    @property
    def external_pods(self) -> "ExternalPods | None":
        """Pods that others created and that the engine places. A new object if their configuration changes."""
        return None

    @property
    def displayed_queues(self) -> "DisplayedQueues | None":
        """Queues displayed in the cluster for users who create pods there themselves."""
        return None

    @property
    def fault(self) -> str:
        """What failed unexpectedly during the last minute, in a thread that follows the cluster and goes on."""
        return ""

    @abstractmethod
    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes, with their allocatable resources."""

    @abstractmethod
    def observe(self, since: str | None) -> Observations:
        """The present state of all pods (`since=None`), or at least of those that changed after the cursor."""

    @abstractmethod
    def forget(self, keys: Sequence[PodKey]) -> None:
        """Stop reporting these pods in `observe`, because their ends are recorded. Their logs stay."""

    @abstractmethod
    def wait(self, timeout_seconds: float) -> bool:
        """Block until something may have changed (True) or the timeout (False). One caller at a time.

        A change wakes the caller once, observed or not: another process may be the observer.
        """

    @abstractmethod
    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """Up to `limit` bytes of standard output and error together, from `offset`. Raises UnknownPod.

        An offset behind the end counts as the end; the offset of the chunk is then the size of the log.
        """

    @abstractmethod
    def remove(self, job: str, *, tenant: str = "") -> None:
        """Stop the running pods of this job and delete everything that belongs to it except its logs. Idempotent.

        Afterwards no pod of the job is observed or runs again. `tenant`: the owner of the job; without it, a backend
        that separates tenants must search everywhere.
        """

    @abstractmethod
    def remove_logs(self, job: str, *, tenant: str = "") -> None:
        """Delete the logs too; nothing of the job remains. Idempotent."""

    @abstractmethod
    def inventory(self, *, fresh: bool = True) -> Inventory:
        """Everything at this backend. `fresh`: as of now; otherwise a recent answer is enough if it is cheaper."""

    @abstractmethod
    def close(self) -> None:
        """Release threads and connections; pods continue. The backend is not used afterwards."""
