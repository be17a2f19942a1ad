"""The life of a job: what happened, what is to be done about it, and where that leads.

Three pure steps, each a function of facts that are passed in:

1. `resolve` reads the policies: stimulus -> action.
2. `advance` looks the action up in `TRANSITIONS`, a table of phase x action, and answers with an `Outcome`: the new
   phase, the pods to stop, the pods to create.
3. The caller writes all of the outcome in one transaction and carries it out; it calls again with `Action.SYNC_JOB`
   whenever a fact changed. To call once too often changes nothing.

The semantics are Volcano's. Where its bookkeeping works against the person who waits for the job, this differs:

- `max_retry` is the number of restarts that are really done; the next one that is asked for fails the job.
- Resuming an aborted job is a person's wish, not a retry: it is not counted. What had succeeded is kept, the rest
  (also what had failed) runs again.
- While a job restarts it can still be aborted, completed or terminated.
- Counts are taken from the pods that are there, also after a kill.
- A pod that was lost (its node or its record is gone) is replaced like a deleted one, but only as often as its task's
  `max_retry` says; then it counts as failed. So a pod that breaks its machines does not do so for ever.
- Asking for an action that the phase does not know is an error for a person, and nothing for a policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.policies import Action, Event


class PodRef(NamedTuple):
    """One attempt of one replica. Attempts of a replica count from 1."""

    task: str
    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What is so about one attempt. `stopping`: its end was wished (by an outcome or by the scheduler).

    A pod that is stopping does not count any more, however it ended: it is as good as deleted.
    """

    task: str
    index: int
    attempt: int
    version: int
    phase: PodPhase = PodPhase.PENDING
    stopping: bool = False
    exit_code: int | None = None

    @property
    def ref(self) -> PodRef:
        return PodRef(self.task, self.index, self.attempt)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is so about a job. `version` counts its full restarts, `retry_count` all restarts by policy."""

    spec: JobSpec
    phase: JobPhase = JobPhase.PENDING
    gang_phase: GangPhase = GangPhase.PENDING
    version: int = 1
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """The part of a job that an action is about: a task, or one replica of it."""

    task: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Stimulus:
    """Something that may call for an action: an event (about a pod, where `task` is named) or a person's command."""

    event: Event = Event.OUT_OF_SYNC
    command: Action | None = None
    task: str = ""
    index: int | None = None
    version: int | None = None
    exit_code: int | None = None

    @property
    def target(self) -> Target | None:
        return Target(self.task, self.index) if self.task else None


class Step(NamedTuple):
    """A phase that was entered, and why."""

    phase: JobPhase
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to write and do. The pods in `stop` are to be marked as stopping, and ended if they still live.

    `steps` are the phases entered on the way, in order (none: the phase is as before); `message` says how the job
    stands, also when its phase did not change. `create` are new attempts, with the job's new `version`.
    """

    phase: JobPhase
    gang_phase: GangPhase
    version: int
    retry_count: int
    reason: str = ""
    message: str = ""
    steps: tuple[Step, ...] = ()
    stop: tuple[PodRef, ...] = ()
    create: tuple[PodRef, ...] = ()


class ImpossibleTransition(Refused):
    """The job's phase does not know this action."""

    code = "impossible_transition"


def resolve(job: JobFacts, stimulus: Stimulus) -> Action:
    """What is to be done about a stimulus: a command as it is, else what the first matching policy says."""
    raise NotImplementedError


def advance(job: JobFacts, pods: Sequence[PodFacts], action: Action, target: Target | None = None) -> Outcome:
    """Do `action`, then whatever follows from the facts. `pods` are all attempts on record.

    Raises ImpossibleTransition when a person's action does not fit the phase.
    """
    raise NotImplementedError
