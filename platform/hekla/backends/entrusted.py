"""The contract with a backend to which jobs are entrusted as a whole: somebody else makes their pods and places them.

It stands beside `base.Backend`, whose methods about machines, logs and removal are true of it too. Jobs are named by
the console's own identifiers, as in `PodKey`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hekla.backends.base import Backend, BackendError, Observation, PodKey
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction


class NotAskable(BackendError):
    """The leader there takes no wishes at all, and why."""


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """A queue as it is to be; amounts are Kubernetes quantities by resource. `parent`: empty for one at the top."""

    name: str
    weight: int
    priority: int
    reclaimable: bool
    parent: str = ""
    capability: Mapping[str, Any] = field(default_factory=dict)
    guarantee: Mapping[str, Any] = field(default_factory=dict)
    deserved: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobSize:
    """How large a job is: of each task its replicas and how few of them will do; `least`: how few will do together."""

    tasks: Mapping[str, tuple[int, int]]
    least: int

    @classmethod
    def of(cls, spec: JobSpec) -> "JobSize":
        """As it is to be."""
        return cls({task.name: (task.replicas, task.minimum) for task in spec.tasks}, spec.gang_minimum)

    def has(self, task: str, index: int) -> bool:
        """Whether there is such a replica in a job of this size."""
        return index < self.tasks.get(task, (0, 0))[0]


@dataclass(frozen=True, slots=True)
class JobReport:
    """How a job stands there. `waits`: why it does not start, in its leader's words; empty where it is not known.

    `is_forgotten`: its leader waits for nothing and does nothing; asked to `SYNC_JOB` it looks at the job again.
    `size`: how large it is there; None where that is not known.
    """

    phase: JobPhase
    gang_phase: GangPhase
    retry_count: int = 0
    reason: str = ""
    message: str = ""
    waits: str = ""
    is_forgotten: bool = False
    size: JobSize | None = None


@dataclass(frozen=True, slots=True)
class PodReport:
    """What is so with a pod that was counted. `is_stopping`: its end was wished there."""

    observation: Observation
    node: str = ""
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod that was made there and that nobody has counted as an attempt yet. `uid`: the server's own word for it."""

    job: str
    task: str
    index: int
    name: str
    uid: str


@runtime_checkable
class JobBackend(Backend, Protocol):
    """A place that leads jobs itself. Every method may be called again with the same arguments."""

    def keep_queue(self, order: QueueOrder) -> None:
        """Make the queue, or make it as ordered. One of somebody else's is left as it is. Raises BackendError."""

    def submit(self, job: str, spec: JobSpec) -> None:
        """Take the job in unless it is there. Raises StartRefused where it never can be, BackendError."""

    def ask(self, job: str, action: LifecycleAction, *, restarts: int, meanwhile: Callable[[], None]) -> None:
        """Have the leader do this to the job, if it counts so many restarts still. Raises NotAskable, BackendError.

        `meanwhile` is called at least each second and right before, and stops it by what it raises.
        Who asks again while it has not begun asks for nothing more.
        """

    def resize(self, job: str, size: JobSize, *, meanwhile: Callable[[], None]) -> None:
        """Make the job as large as this, if it is there; of its tasks no other thing changes. Raises BackendError.

        `meanwhile` as with `ask`.
        """

    def jobs(self) -> Mapping[str, JobReport]:
        """All jobs of ours that are there now. Raises BackendError."""

    def newcomers(self) -> Sequence[NewPod]:
        """Pods of our jobs that are to be counted. Raises BackendError."""

    def count(self, pod: NewPod, key: PodKey) -> None:
        """This pod is that attempt from now on; it was deleted meanwhile: nothing. Raises BackendError."""

    def pods(self, *, fresh: bool = False) -> Sequence[PodReport]:
        """All that were counted, and of those that are gone the ends that `forget` was not told of.

        `fresh`: as of this moment, for whoever does not know what was told before. Raises BackendError.
        """
