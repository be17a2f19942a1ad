"""The contract between the controller and whatever runs pods.

A `Backend` has a core that every kind implements, and facets: attributes that are None where a cluster cannot do such a
thing. Everything is named by a `PodKey`, so that to start a pod twice is to find it started. A backend keeps what it
needs to answer after a restart of everything else; the controller keeps the history.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from hekla.backends.streams import PodCommand, Stream
from hekla.domain.addresses import Replica
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.domain.volumes import VolumeMount, VolumeSpec

if TYPE_CHECKING:
    from hekla.backends.delegated import DelegatedScheduling
    from hekla.backends.external_pods import DisplayedQueues, ExternalPods
    from hekla.backends.tenancy import Tenancy

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class PodKey:
    """One attempt of one replica: the same key always means the same pod.

    `tenant`: its short name, for backends that keep tenants apart. It says where the pod is, not which one it is.
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
    """A named set of packages. Without requirements it is the console's own interpreter."""

    name: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodPriority:
    """The class that a job names, and its value as it was when the job was submitted."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class PodOrder:
    """All that a backend needs to start a pod. `address` is what `PodRunner.address` gave for it.

    `secrets` are files like `files`, for the pod's own eyes: they are in no record that is read by others.
    `mounts` are folders of files by the absolute paths at which a pod with a root of its own finds them too.
    `volumes` are those of its job that `volume_mounts` name.
    `has_peers`: other pods of its job are told its address; `is_closed`: and nobody else is to reach it.
    `priority`: for machines that choose whom to end; None where the job names no class. `ports`: by name those at which
    it serves people outside, where the cluster leads them there.
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


@dataclass(frozen=True, slots=True)
class Observation:
    """What the backend knows of one pod now. Repeating it changes nothing."""

    key: PodKey
    phase: PodPhase
    at: datetime
    reason: str = ""
    message: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """Present states since a cursor. `complete`: all pods are here, so one that is missing is gone."""

    pods: Sequence[Observation]
    cursor: str
    complete: bool


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A machine as the backend reports it."""

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    message: str = ""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes `offset .. next_offset` of a pod's log; `complete`: the pod has ended and no more will come."""

    data: bytes
    offset: int
    next_offset: int
    complete: bool


@dataclass(frozen=True, slots=True)
class PodMetrics:
    """What a pod used up to an instant.

    `cpu_seconds`: of all its processes since it began, also those that have ended; it only grows. `gpus_busy`: how
    many GPUs it kept busy lately (1.5 of 2). GPU figures are None where none of its processes is known to use one.
    """

    key: PodKey
    at: datetime
    cpu_seconds: float
    memory_bytes: int
    gpus_busy: float | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that is at a backend now, for the auditor.

    `alive`: pods that still run; `present`: jobs with more than logs there; `logged`: jobs with anything there.
    """

    alive: frozenset[PodKey]
    present: frozenset[str]
    logged: frozenset[str]


class HealthProblem(StrEnum):
    """Why a cluster is out of reach."""

    UNUSABLE = "unusable"  # what is said of it, or the key to it, can never lead there
    SILENT = "silent"  # nobody answers
    UNTRUSTED = "untrusted"  # somebody answers who cannot prove to be it
    NOT_LET_IN = "not_let_in"  # it does not take the key
    REFUSED = "refused"  # it answers that something is wrong


@dataclass(frozen=True, slots=True)
class Health:
    """How a cluster is, as it tells itself. Without a problem it is within reach.

    `detail`: the problem in the words of whoever noticed. `missing`: rights that Hekla needs and has not, each as
    `verb resource`, with ` *` where it is needed in the whole cluster, or the name of a namespace that is not ours.
    `has_namespace`: None where it cannot be told. `kubelets`: how many machines have which version.
    """

    problem: HealthProblem | None = None
    detail: str = ""
    version: str = ""
    has_namespace: bool | None = None
    missing: tuple[str, ...] = ()
    kubelets: Mapping[str, int] = field(default_factory=dict)


class BackendError(Exception):
    """The backend could not do it now; the same call may work later."""


class StartRefused(BackendError):
    """This pod can never start here (no such command, environment cannot be built); its message says why."""


class StartDelayed(BackendError):
    """A bound of the place itself has no room for this pod now; its message says which. It may be started later."""


class UnknownPod(BackendError):
    """No pod of that key is or was here."""


class PodRunner(Protocol):
    """Starts and stops single pods, where the engine put them. Every call may be repeated with the same arguments."""

    def address(self, replica: Replica) -> str:
        """Where the other pods of its job reach this replica in all its attempts, known before it starts."""

    def start_many(
        self, orders: Iterable[PodOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Start each pod unless it was started, or stopped, already. Yields each with its error, in any order.

        An order is taken from the iterable when its time comes. `heartbeat` is called about each second; what it raises
        ends the iteration, and no start begins from then on. StartRefused: this pod can never start here.
        """

    def stop_many(
        self, requests: Iterable[tuple[PodKey, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Ask each pod to end, for its reason, and end it when its grace is over. Ended pods are left alone.

        A pod that was not started yet never runs: it is observed as failed, with the reason Stopped. Yields, and uses
        `heartbeat`, as `start_many` does.
        """


class Exec(Protocol):
    """Commands and terminals in running pods."""

    def run(
        self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False
    ) -> AbstractAsyncContextManager[PodCommand]:
        """A command in the pod beside its own. Raises BackendError, UnknownPod."""


class PortForwarding(Protocol):
    """Connections to servers in running pods."""

    def connect(self, key: PodKey, port: int) -> AbstractAsyncContextManager[Stream]:
        """A connection to that port of the pod. Raises BackendError, UnknownPod."""


class Metrics(Protocol):
    """Measures what running pods use."""

    def measure(self, keys: Sequence[PodKey]) -> Sequence[PodMetrics]:
        """What these pods use now. Those that do not run, or cannot be measured, are left out. Raises BackendError."""


class DisruptionBudgets(Protocol):
    """Limits how many pods may be disrupted at once."""

    def protected(self, keys: Sequence[PodKey], *, heartbeat: Callable[[], None]) -> Mapping[PodKey, str]:
        """Those of these pods that a budget protects now, with the server's message.

        `heartbeat` as in `PodRunner.start_many`.
        """


class Backend(ABC):
    """One place where pods run. Every method may be called again with the same arguments.

    A facet is None where the cluster does not have it. Exactly one of `runner` and `delegated` is there.
    """

    @property
    def runner(self) -> PodRunner | None:
        """Starts and stops the pods that the engine places. None: the cluster's own scheduler does (`delegated`)."""
        return None

    @property
    def delegated(self) -> "DelegatedScheduling | None":
        """Jobs handed over as a whole to the cluster's own scheduler."""
        return None

    @property
    def exec(self) -> Exec | None:
        """Commands and terminals in pods."""
        return None

    @property
    def port_forwarding(self) -> PortForwarding | None:
        """Connections to ports of pods."""
        return None

    @property
    def metrics(self) -> Metrics | None:
        """What pods use."""
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
    def external_pods(self) -> "ExternalPods | None":
        """Pods that others created and that the engine places. Another object when their configuration changes."""
        return None

    @property
    def displayed_queues(self) -> "DisplayedQueues | None":
        """Queues shown in the cluster to those who create pods there themselves."""
        return None

    @abstractmethod
    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes, with what they can give to pods."""

    @abstractmethod
    def observe(self, since: str | None) -> Observations:
        """The present state of all pods (`since=None`), or at least of those that changed after that cursor."""

    @abstractmethod
    def forget(self, keys: Sequence[PodKey]) -> None:
        """The ends of these pods are recorded: `observe` need not report them again. Logs stay."""

    @abstractmethod
    def wait(self, timeout_seconds: float) -> bool:
        """Block until something may have changed (True) or the time is over (False). One caller at a time.

        A change wakes once, also where nobody observes it: the caller may not be the one who observes.
        """

    @abstractmethod
    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """Up to `limit` bytes of standard output and error together, from `offset`. Raises UnknownPod.

        An offset behind the end counts as the end, and the chunk says where that is.
        """

    @abstractmethod
    def remove(self, job: str, *, tenant: str = "") -> None:
        """End what still runs of this job and delete what is attached to it, all but its logs. Idempotent.

        Afterwards no pod of it is observed, and one that was there never runs again. `tenant`: whose job it is, which
        saves a backend that separates tenants from looking everywhere.
        """

    @abstractmethod
    def remove_logs(self, job: str, *, tenant: str = "") -> None:
        """Delete the logs too: nothing of this job is left. Idempotent."""

    @abstractmethod
    def inventory(self, *, fresh: bool = True) -> Inventory:
        """All that is here. `fresh`: at this moment; else a recent answer will do, where that costs less."""

    @abstractmethod
    def close(self) -> None:
        """Release threads and connections; pods go on. The backend is not used afterwards."""


def one_by_one(
    work: Callable[[Item], None], items: Iterable[Item], heartbeat: Callable[[], None]
) -> Iterator[tuple[Item, BackendError | None]]:
    """`PodRunner.start_many` and `PodRunner.stop_many` where nothing is gained by doing many at once."""
    for item in items:
        heartbeat()
        try:
            work(item)
        except BackendError as error:
            yield item, error
        else:
            yield item, None
