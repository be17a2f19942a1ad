"""What is so about a job and its pods, as the lifecycle needs to know it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

_GOING_ON = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """The place of one replica in a job; attempts come and go in it."""

    task: str
    index: int

    def __str__(self) -> str:
        return f"{self.task}-{self.index}"


@dataclass(frozen=True, slots=True, order=True)
class PodRef:
    """One attempt of one replica. Attempts of a replica count from 1."""

    task: str
    index: int
    attempt: int

    @property
    def slot(self) -> Slot:
        return Slot(self.task, self.index)


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What is so about one attempt.

    `stopping`: its end was wished, by an outcome or by the scheduler; such a pod does not count any more, however it
    ended: it is as good as deleted. `evicted`: the scheduler wished it. `since`: when it came into its phase (for a
    pod that does not run yet: when it was created).
    """

    task: str
    index: int
    attempt: int
    version: int
    phase: PodPhase = PodPhase.PENDING
    stopping: bool = False
    exit_code: int | None = None
    evicted: bool = False
    since: datetime | None = None

    @property
    def ref(self) -> PodRef:
        return PodRef(self.task, self.index, self.attempt)

    @property
    def slot(self) -> Slot:
        return Slot(self.task, self.index)

    @property
    def is_alive(self) -> bool:
        """It holds resources, or may still get some."""
        return not self.phase.is_final


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is so about a job. `version` counts its full restarts from 1, `retry_count` all restarts by policy.

    `deadline_at`: when it must have ended; None while that does not run.
    """

    spec: JobSpec
    phase: JobPhase = JobPhase.PENDING
    gang_phase: GangPhase = GangPhase.PENDING
    version: int = 1
    retry_count: int = 0
    deadline_at: datetime | None = None

    def is_out_of_time(self, now: datetime) -> bool:
        """Whether it goes on although its time is over."""
        return self.deadline_at is not None and now >= self.deadline_at and self.phase in _GOING_ON


@dataclass(frozen=True, slots=True)
class ActionTarget:
    """The part of a job that an action is about: a task, or one replica of it."""

    task: str
    index: int | None = None


class AttemptIndex:
    """The attempts of a job by slot: which of them count, and which stand in the way of a new one."""

    def __init__(self, spec: JobSpec, pods: Iterable[PodFacts]) -> None:
        self.spec = spec
        self._loss_limit = {task.name: task.max_retry for task in spec.tasks}
        self._replicas = {task.name: task.replicas for task in spec.tasks}
        self._attempts: dict[Slot, list[PodFacts]] = {}
        for pod in pods:
            self._attempts.setdefault(pod.slot, []).append(pod)
        for attempts in self._attempts.values():
            attempts.sort(key=lambda pod: pod.attempt)
        self._slots = [Slot(task.name, index) for task in spec.tasks for index in range(task.replicas)]

    def slots(self) -> Sequence[Slot]:
        """Every replica that the job should have."""
        return self._slots

    def wants(self, task: str, index: int) -> bool:
        """Whether the job should have this replica, as large as it is now."""
        return index < self._replicas.get(task, 0)

    def surplus(self) -> list[PodFacts]:
        """Every attempt of replicas that the job should not have any more."""
        beyond = (attempts for slot, attempts in self._attempts.items() if not self.wants(slot.task, slot.index))
        return [pod for attempts in beyond for pod in attempts]

    def attempts(self, slot: Slot) -> list[PodFacts]:
        """Every attempt of a replica, the first one first."""
        return self._attempts.get(slot, [])

    def current(self, slot: Slot, version: int) -> PodFacts | None:
        """The attempt that counts for a replica; None where there is none, or only one that is to be replaced."""
        attempts = self.attempts(slot)
        if not attempts or attempts[-1].stopping or attempts[-1].version != version:
            return None
        if attempts[-1].phase is PodPhase.LOST and self.replaces_losses(slot, version):
            return None
        return attempts[-1]

    def replaces_losses(self, slot: Slot, version: int) -> bool:
        """Whether a lost attempt of this replica is replaced once more."""
        limit = self._loss_limit.get(slot.task, 0)
        attempts = [pod for pod in self.attempts(slot) if pod.version == version and not pod.stopping]
        return limit < 0 or sum(pod.phase is PodPhase.LOST for pod in attempts) <= limit

    def next_attempt(self, slot: Slot) -> PodRef:
        """The name of the attempt that would come after those on record."""
        attempts = self.attempts(slot)
        return PodRef(slot.task, slot.index, attempts[-1].attempt + 1 if attempts else 1)

    def alive(self) -> list[PodFacts]:
        """Every attempt that has not ended, in order of its name."""
        pods = [pod for attempts in self._attempts.values() for pod in attempts if pod.is_alive]
        return sorted(pods, key=lambda pod: pod.ref)
