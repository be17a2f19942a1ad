"""The contract between the controller and whatever runs pods.

Everything is named by a `PodKey`, so that to start a thing twice is to find it started. A backend keeps what it needs
to answer after a restart of everything else; the controller keeps the history.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeVar

from hekla.backends.lines import Command, Line
from hekla.domain.addresses import Replica
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.domain.volumes import VolumeMount, VolumeSpec

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
class Environment:
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
    """All that a backend needs to start a pod. `address` is what `Backend.address` gave for it.

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
    environment: Environment | None = None
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
class Use:
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
class Capabilities:
    """What this backend can do, each a question."""

    simulated: bool  # are its pods imagined?
    enforces_limits: bool  # does a pod that asks for 1 GiB get killed above it?
    has_endpoints: bool  # can a person be brought to a port of a pod?
    measures_use: bool = False  # can it say what a running pod uses?
    runs_commands: bool = False  # can a person run a command in a pod that runs?


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that is at a backend now, for the auditor.

    `alive`: pods of which something is at work; `kept`: jobs of which more is there than logs; `logged`: jobs of which
    there is anything at all.
    """

    alive: frozenset[PodKey]
    kept: frozenset[str]
    logged: frozenset[str]


class Trouble(StrEnum):
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

    problem: Trouble | None = None
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


class NotHere(BackendError):
    """This kind of backend cannot do it at all; its capabilities say so."""


class Backend(Protocol):
    """One place where pods run. Every method may be called again with the same arguments."""

    capabilities: Capabilities

    def nodes(self) -> Sequence[NodeInfo]:
        """The machines, with what they can give to pods."""

    def address(self, replica: Replica) -> str:
        """Where the other pods of its job reach this replica in all its attempts, known before it starts."""

    def start(self, order: PodOrder) -> None:
        """Start the pod unless it was started, or stopped, already. Raises BackendError, StartRefused."""

    def start_many(
        self, orders: Iterable[PodOrder], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Start each, and tell what went wrong with it, if anything, in any order.

        An order is asked for when its time comes. `meanwhile` is called about each second; what it raises ends this, as
        it does to ask no further: no start is begun from then on.
        """

    def stop(self, key: PodKey, *, reason: str) -> None:
        """Ask the pod to end, and make it end when its grace is over. An ended pod is left alone.

        A pod that was not started yet never will run: it is observed as failed, with the reason Stopped.
        """

    def stop_many(
        self, wishes: Iterable[tuple[PodKey, str]], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Stop each for its reason, as `start_many` starts."""

    def observe(self, since: str | None) -> Observations:
        """What is so now: of all pods (`since=None`), or at least of those that changed after that cursor."""

    def forget(self, keys: Sequence[PodKey]) -> None:
        """The ends of these pods are recorded: `observe` need not tell of them again. Logs stay."""

    def wait(self, timeout_seconds: float) -> bool:
        """Block until something may have changed (True) or the time is over (False). One caller at a time.

        What changed wakes once, also where nobody observes it: the caller may be one who is not to.
        """

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """Up to `limit` bytes of standard output and error together, from `offset`. Raises UnknownPod.

        An offset behind the end is taken for the end, and told so.
        """

    def use(self, keys: Sequence[PodKey]) -> Sequence[Use]:
        """What these pods use now. Those that do not run, or cannot be measured, are left out."""

    def endpoint(self, key: PodKey, port: int) -> tuple[str, int]:
        """Host and port where a server in the pod listens, for other pods of its job. Raises UnknownPod."""

    def reach(self, key: PodKey, port: int) -> AbstractAsyncContextManager[Line]:
        """A connection to a server in the pod, where there are endpoints. Raises BackendError, UnknownPod."""

    def run(
        self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False
    ) -> AbstractAsyncContextManager[Command]:
        """A command in the pod beside its own, where that can be done. Raises BackendError, UnknownPod."""

    def remove(self, job: str, *, tenant: str = "") -> None:
        """End what still runs of this job and delete what is attached to it, all but its logs. Idempotent.

        Afterwards no pod of it is observed, and one that was there never runs again. `tenant`: whose job it is, which
        saves a backend that keeps tenants apart from looking everywhere.
        """

    def remove_logs(self, job: str, *, tenant: str = "") -> None:
        """Delete the logs too: nothing of this job is left. Idempotent."""

    def inventory(self, *, fresh: bool = True) -> Inventory:
        """What is here. `fresh`: at this moment; else what was heard lately will do, where that costs less."""

    def close(self) -> None:
        """Let go of threads and connections; what runs goes on. Nothing is asked of it afterwards."""


def one_by_one(
    work: Callable[[Item], None], items: Iterable[Item], meanwhile: Callable[[], None]
) -> Iterator[tuple[Item, BackendError | None]]:
    """`Backend.start_many` and `Backend.stop_many` where nothing is gained by doing many at once."""
    for item in items:
        meanwhile()
        try:
            work(item)
        except BackendError as error:
            yield item, error
        else:
            yield item, None
