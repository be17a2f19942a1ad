"""A workload: jobs with the run times of their pods, and the capacity of a cluster over time.

All importers make this one form, whether the jobs come from rows of the console or from files of other schedulers.
Times are whole milliseconds since the epoch: sums of them are exact, so the same workload always gives the same run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, QueueSpec

MAX_JOBS = 200_000
MAX_PODS = 2_000_000
SECOND = 1000
"""In units of a workload."""
HOUR = 3600 * SECOND
RunTime = int | None
"""How long a pod holds its node, in milliseconds; None: until the end of the run, because its end is unknown."""


class EvictionEffect(StrEnum):
    """What an eviction does to a job: its pods start again, all of its pods do, or the job ends."""

    PODS = "pods"
    JOB = "job"
    END = "end"


class WorkloadNote(StrEnum):
    """What was assumed about a workload, or left out of it."""

    NODES_NOW = "nodes_now"
    NODES_FROM_EVENTS = "nodes_from_events"
    NODES_FROM_FILE = "nodes_from_file"
    NO_END = "no_end"
    NEVER_RAN = "never_ran"
    ENDED_BEFORE_START = "ended_before_start"
    NO_CLAIMS = "no_claims"
    NO_EXTENDERS = "no_extenders"
    NO_ZONE = "no_zone"
    EQUAL_PODS = "equal_pods"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    SIMULATED = "simulated"


class RecordGap(StrEnum):
    """What the record of a job lacks, so that a run may differ from what happened."""

    RESIZED = "resized"
    RESTARTED = "restarted"
    STAGES = "stages"
    CLAIMS = "claims"
    EXTERNAL = "external"
    BEFORE = "before"


class RecordedBind(NamedTuple):
    """That an attempt of a pod (its position in the job) held a node. `until` None: it still does."""

    pod: int
    attempt: int
    node: str
    at: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a job. `started`: when its minimum was on nodes; `finished`: when it ended. None: it did not.

    `binds` may be empty although it ran: not every source knows the nodes.
    """

    started: int | None = None
    finished: int | None = None
    binds: tuple[RecordedBind, ...] = ()
    evictions: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadJob:
    """A job of a workload. `group`: as it was submitted, with all of its pods pending.

    `runs`: for each pod, how long each attempt ran until it ended by itself. An attempt after an eviction is not among
    them: it repeats the one before. `leaves`: when somebody removed it, if it had not started by then. `placed`: the
    pods that were already on nodes when the workload began, with the remaining run time in `runs`.

    `stops`: by pod and attempt, the end of its run time in which it was stopping. `releases`: by pod, how long it held
    its node after each eviction. `priorities`: later ones, with their times. `gaps`: what is not recorded about it.
    """

    group: PodGroupSpec
    submitted: int
    runs: tuple[tuple[RunTime, ...], ...]
    tenant: str
    person: str = ""
    leaves: int | None = None
    on_eviction: EvictionEffect = EvictionEffect.PODS
    history: History = field(default_factory=History)
    placed: Mapping[int, str] = field(default_factory=dict)
    stops: Mapping[tuple[int, int], int] = field(default_factory=dict)
    releases: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    priorities: tuple[tuple[int, int], ...] = ()
    gaps: tuple[RecordGap, ...] = ()

    @property
    def uid(self) -> str:
        """The uid of the job in the engine."""
        return self.group.uid

    @property
    def has_run(self) -> bool:
        """Whether it is known how long any of its pods runs."""
        return any(one is not None for attempts in self.runs for one in attempts)


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """A node that was added or changed at a time, or removed (`node` None)."""

    at: int
    name: str
    node: NodeSpec | None


class QueueUpdate(NamedTuple):
    """The settings of a queue from a time on."""

    at: int
    queue: QueueSpec


class PolicyUpdate(NamedTuple):
    """The text of the policy from a time on."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs by time of submission, and the cluster. `state`: nodes, queues and limits when it begins, without jobs.

    `starts`, `ends`: the period. Jobs submitted before it count for the others, but not in results. `notes`: what was
    assumed, with how often. `instants`: when the controller decided something, in order: it needs a moment to see what
    happened, and decides about several events together. `queues`, `policies`: changes in the period; the first policy
    is the one in force when it begins. `release`: how long an evicted pod usually held its node, in milliseconds.
    """

    starts: int
    ends: int
    state: ClusterState
    jobs: tuple[WorkloadJob, ...]
    changes: tuple[CapacityChange, ...] = ()
    notes: Mapping[WorkloadNote, int] = field(default_factory=dict)
    instants: tuple[int, ...] = ()
    queues: tuple[QueueUpdate, ...] = ()
    policies: tuple[PolicyUpdate, ...] = ()
    release: int = 0

    @property
    def pods(self) -> int:
        """The number of pods of all jobs."""
        return sum(len(job.group.pods) for job in self.jobs)

    def counted(self) -> Iterator[WorkloadJob]:
        """The jobs that were submitted within the period."""
        return (job for job in self.jobs if self.starts <= job.submitted < self.ends)


def with_estimates(workload: Workload) -> Workload:
    """Give jobs that never ran the median run time of their tenant's jobs in the queue, else of all jobs."""
    known: dict[tuple[str, str], list[int]] = {}
    every: list[int] = []
    for job in workload.jobs:
        if times := [one for attempts in job.runs for one in attempts if one is not None]:
            known.setdefault((job.tenant, job.group.queue), []).append(max(times))
            every.append(max(times))
    usual = int(median(every)) if every else HOUR
    typical = {key: int(median(times)) for key, times in known.items()}

    def estimated(job: WorkloadJob) -> WorkloadJob:
        if job.placed or any(job.runs):
            return job
        run = typical.get((job.tenant, job.group.queue), usual)
        return replace(job, runs=((run,),) * len(job.group.pods))

    jobs = tuple(map(estimated, workload.jobs))
    changed = sum(new is not old for new, old in zip(jobs, workload.jobs, strict=True))
    notes = {**workload.notes, **({WorkloadNote.NEVER_RAN: changed} if changed else {})}
    return replace(workload, jobs=jobs, notes=notes)


def in_order(jobs: Sequence[WorkloadJob]) -> tuple[WorkloadJob, ...]:
    """Jobs by time of submission; those of one instant stay in their order."""
    return tuple(sorted(jobs, key=lambda job: job.submitted))


def with_priority(group: PodGroupSpec, priority: int) -> PodGroupSpec:
    """The job with another priority; pods that have one of their own keep it."""
    pods = (replace(pod, priority=priority) if pod.priority == group.priority else pod for pod in group.pods)
    return replace(group, priority=priority, pods=tuple(pods))
