"""The state of a job and its pods that the lifecycle works on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

_ACTIVE = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})


class Slot(NamedTuple):
    """One replica of a task. It has one attempt after the other."""

    task: str
    index: int  # type: ignore[assignment]  # hides the method of tuples. As a key, a tuple is the fastest.

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
    """The state of one attempt.

    `stopping`: the lifecycle or the scheduler ends it. Such a pod counts as deleted, whatever its exit code. `evicted`:
    the scheduler ends it. `retried`: a restart by policy replaced it. `since`: when it entered its phase; before it
    runs, when it was created.
    """

    task: str
    index: int
    attempt: int
    version: int
    phase: PodPhase = PodPhase.PENDING
    stopping: bool = False
    exit_code: int | None = None
    evicted: bool = False
    retried: bool = False
    since: datetime | None = None

    @property
    def ref(self) -> PodRef:
        return PodRef(self.task, self.index, self.attempt)

    @property
    def slot(self) -> Slot:
        return Slot(self.task, self.index)

    @property
    def is_alive(self) -> bool:
        """It holds resources, or may still get them."""
        return not self.phase.is_final


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The state of a job. `version` counts full restarts from 1, `retry_count` all restarts by policy.

    `deadline_at`: when it must have ended; None before its first pods run, or without a deadline. `restart_at`: when a
    restart that waits begins; `restart_backoff`: the first delay between restarts (`backoff`), zero for none.
    """

    spec: JobSpec
    phase: JobPhase = JobPhase.PENDING
    gang_phase: GangPhase = GangPhase.PENDING
    version: int = 1
    retry_count: int = 0
    deadline_at: datetime | None = None
    restart_at: datetime | None = None
    restart_backoff: timedelta = timedelta(0)

    def is_out_of_time(self, now: datetime) -> bool:
        """Whether it is still active after its deadline."""
        return self.deadline_at is not None and now >= self.deadline_at and self.phase in _ACTIVE


@dataclass(frozen=True, slots=True)
class ActionTarget:
    """The part of a job that an action applies to: a task, or one replica of it."""

    task: str
    index: int | None = None


class AttemptIndex:
    """The attempts of a job by replica: which one counts, and which ones block a new attempt."""

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
        """Whether the job has this replica at its present size."""
        return index < self._replicas.get(task, 0)

    def surplus(self) -> list[PodFacts]:
        """Every attempt of replicas that a scale-down removed."""
        beyond = (attempts for slot, attempts in self._attempts.items() if not self.wants(slot.task, slot.index))
        return [pod for attempts in beyond for pod in attempts]

    def attempts(self, slot: Slot) -> list[PodFacts]:
        """Every attempt of a replica, the first one first."""
        return self._attempts.get(slot, [])

    def current(self, slot: Slot, version: int) -> PodFacts | None:
        """The attempt that counts for a replica; None if there is none, or if it will be replaced."""
        attempts = self.attempts(slot)
        if not attempts or attempts[-1].stopping or attempts[-1].version != version:
            return None
        if attempts[-1].phase is PodPhase.LOST and self.replaces_losses(slot, version):
            return None
        return attempts[-1]

    def replaces_losses(self, slot: Slot, version: int) -> bool:
        """Whether a lost attempt of this replica is replaced again."""
        limit = self._loss_limit.get(slot.task, 0)
        attempts = [pod for pod in self.attempts(slot) if pod.version == version and not pod.stopping]
        return limit < 0 or sum(pod.phase is PodPhase.LOST for pod in attempts) <= limit

    def next_attempt(self, slot: Slot) -> PodRef:
        """The reference of the attempt after the recorded ones."""
        attempts = self.attempts(slot)
        return PodRef(slot.task, slot.index, attempts[-1].attempt + 1 if attempts else 1)

    def alive(self) -> list[PodFacts]:
        """Every attempt that has not ended, in order of its name."""
        pods = [pod for attempts in self._attempts.values() for pod in attempts if pod.is_alive]
        return sorted(pods, key=lambda pod: pod.ref)
