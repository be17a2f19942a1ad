"""The backend facet for delegated jobs: the cluster's own scheduler creates and places their pods.

Jobs are named by Hekla's own identifiers, as in `PodKey`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hekla.backends.base import BackendError, Observation, PodKey
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction


class ActionUnsupported(BackendError):
    """The cluster's scheduler does not accept actions at all; the message says why."""


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The desired state of a queue. Amounts are Kubernetes quantities by resource. `parent`: empty at the top.

    `annotations`, `affinity`: as in Volcano's Queue.
    """

    name: str
    weight: int
    priority: int
    reclaimable: bool
    parent: str = ""
    capability: Mapping[str, Any] = field(default_factory=dict)
    guarantee: Mapping[str, Any] = field(default_factory=dict)
    deserved: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    affinity: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DelegatedJobSize:
    """The size of a job: replicas and minimum of each task; `least`: the minimum of all together."""

    tasks: Mapping[str, tuple[int, int]]
    least: int

    @classmethod
    def of(cls, spec: JobSpec) -> "DelegatedJobSize":
        """The size that this spec requests."""
        return cls({task.name: (task.replicas, task.minimum) for task in spec.tasks}, spec.gang_minimum)

    def has(self, task: str, index: int) -> bool:
        """Whether a job of this size has this replica."""
        return index < self.tasks.get(task, (0, 0))[0]


@dataclass(frozen=True, slots=True)
class JobReport:
    """The state of a job in the cluster. `waits`: why it does not start, in the scheduler's words; empty if not known.

    `is_stuck`: the scheduler has nothing to wait for and does nothing; the action `SYNC_JOB` makes it check the job.
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
    """The state of a pod with an attempt number. `is_stopping`: its deletion was requested in the cluster."""

    observation: Observation
    node: str = ""
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod that the cluster's scheduler created and that has no attempt number yet. `uid`: from the server."""

    job: str
    task: str
    index: int
    name: str
    uid: str


class DelegatedScheduling(Protocol):
    """Jobs in a cluster whose own scheduler runs them. All methods are idempotent."""

    def apply_queue(self, order: QueueOrder) -> None:
        """Create or update the queue. A queue of another owner is left unchanged. Raises BackendError."""

    def submit(self, job: str, spec: JobSpec, *, tenant: str) -> None:
        """Create the tenant's job unless it exists. Raises StartRefused if it can never be created, BackendError."""

    def request(self, job: str, action: LifecycleAction, *, restarts: int, heartbeat: Callable[[], None]) -> None:
        """Request this action from the scheduler, if the job still has `restarts` restarts.

        Raises ActionUnsupported, BackendError. `heartbeat` is called at least once a second and right before the
        request; an exception from it cancels the request. A second request before the first has begun has no effect.
        """

    def resize(self, job: str, size: DelegatedJobSize, *, heartbeat: Callable[[], None]) -> None:
        """Resize the job, if it exists; its tasks do not change otherwise. Raises BackendError.

        `heartbeat` as in `request`.
        """

    def list_jobs(self) -> Mapping[str, JobReport]:
        """All jobs of Hekla that are in the cluster now. Raises BackendError."""

    def list_new_pods(self) -> Sequence[NewPod]:
        """Pods of Hekla's jobs that have no attempt number yet. Raises BackendError."""

    def assign_attempt(self, pod: NewPod, key: PodKey) -> None:
        """Assign the attempt number of `key` to this pod. No effect if the pod was deleted. Raises BackendError."""

    def list_pods(self, *, fresh: bool = False) -> Sequence[PodReport]:
        """All pods with an attempt number, and the ends of deleted pods until `Backend.forget` is called for them.

        `fresh`: as of this moment, for callers without earlier reports. Raises BackendError.
        """
