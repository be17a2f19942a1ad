"""The facet of a backend to which jobs are delegated as a whole: the cluster's scheduler creates and places their pods.

Jobs are named by the console's own identifiers, as in `PodKey`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hekla.backends.base import BackendError, Observation, PodKey
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction


class ActionUnsupported(BackendError):
    """The scheduler there takes no actions at all; the message says why."""


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The wanted state of a queue. Amounts are Kubernetes quantities by resource. `parent`: empty at the top."""

    name: str
    weight: int
    priority: int
    reclaimable: bool
    parent: str = ""
    capability: Mapping[str, Any] = field(default_factory=dict)
    guarantee: Mapping[str, Any] = field(default_factory=dict)
    deserved: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DelegatedJobSize:
    """The size of a job: replicas and minimum of each task; `least`: the minimum of all together."""

    tasks: Mapping[str, tuple[int, int]]
    least: int

    @classmethod
    def of(cls, spec: JobSpec) -> "DelegatedJobSize":
        """The size that this spec wants."""
        return cls({task.name: (task.replicas, task.minimum) for task in spec.tasks}, spec.gang_minimum)

    def has(self, task: str, index: int) -> bool:
        """Whether there is such a replica in a job of this size."""
        return index < self.tasks.get(task, (0, 0))[0]


@dataclass(frozen=True, slots=True)
class JobReport:
    """The state of a job there. `waits`: why it does not start, in the scheduler's words; empty if not known.

    `is_stuck`: the scheduler waits for nothing and does nothing; the action `SYNC_JOB` makes it look at the job again.
    `size`: None if not known.
    """

    phase: JobPhase
    gang_phase: GangPhase
    retry_count: int = 0
    reason: str = ""
    message: str = ""
    waits: str = ""
    is_stuck: bool = False
    size: DelegatedJobSize | None = None


@dataclass(frozen=True, slots=True)
class PodReport:
    """The state of a pod with an attempt number. `is_stopping`: it was asked to end there."""

    observation: Observation
    node: str = ""
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod that was created there and has no attempt number yet. `uid`: the server's own."""

    job: str
    task: str
    index: int
    name: str
    uid: str


class DelegatedScheduling(Protocol):
    """Jobs in a cluster whose own scheduler runs them. Every method may be called again with the same arguments."""

    def apply_queue(self, order: QueueOrder) -> None:
        """Create the queue, or update it. One that belongs to somebody else is left as it is. Raises BackendError."""

    def submit(self, job: str, spec: JobSpec) -> None:
        """Create the job unless it is there. Raises StartRefused where it never can be, BackendError."""

    def request(self, job: str, action: LifecycleAction, *, restarts: int, heartbeat: Callable[[], None]) -> None:
        """Have the scheduler do this to the job, if it still counts so many restarts.

        Raises ActionUnsupported, BackendError. `heartbeat` is called at least each second and right before the request,
        and stops it by what it raises. To repeat a request before it has begun has no further effect.
        """

    def resize(self, job: str, size: DelegatedJobSize, *, heartbeat: Callable[[], None]) -> None:
        """Give the job this size, if it is there; nothing else of its tasks changes. Raises BackendError.

        `heartbeat` as in `request`.
        """

    def list_jobs(self) -> Mapping[str, JobReport]:
        """All jobs of ours that are there now. Raises BackendError."""

    def list_new_pods(self) -> Sequence[NewPod]:
        """Pods of our jobs that have no attempt number yet. Raises BackendError."""

    def assign_attempt(self, pod: NewPod, key: PodKey) -> None:
        """This pod is that attempt from now on. No effect if it was deleted meanwhile. Raises BackendError."""

    def list_pods(self, *, fresh: bool = False) -> Sequence[PodReport]:
        """All pods with an attempt number; of those that are gone, the ends that `Backend.forget` was not called for.

        `fresh`: as of this moment, for callers without earlier reports. Raises BackendError.
        """
