"""The output of a cycle: binds, evictions, admissions, and the reasons of jobs that wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from hekla.domain.errors import Problem
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import PodStatus


class Bind(NamedTuple):
    """Bind this pod to this node and set these annotations on it, for example its cards."""

    job: str
    pod: str
    node: str
    annotations: Mapping[str, str] = MappingProxyType({})


class ShareHolder(StrEnum):
    """Whether a share is that of a queue or of a job."""

    QUEUE = "queue"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class ShareShift:
    """A share before and after an eviction: 1.0 is all that the queue deserves, or for a job the whole cluster."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class ShareImpact:
    """How an eviction changed the shares of victim and beneficiary, as one plugin counts them.

    All evictions of one statement are counted together, with the placements they were for. `taker` is None if no job
    gains, and equals `giver` if both are the same queue or job.
    """

    plugin: str
    holder: ShareHolder
    giver: ShareShift
    taker: ShareShift | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """Evict this pod, for which job, by which action, and which plugins allowed it.

    `shares`: those of the two queues and, within one queue, of the two jobs, if a plugin counts them.
    """

    job: str
    pod: str
    node: str
    action: str
    for_job: str = ""
    plugins: tuple[str, ...] = ()
    shares: tuple[ShareImpact, ...] = ()


class Cause(StrEnum):
    """The kind of a pending reason."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    GANG = "gang"
    PRIORITY = "priority"
    CONSTRAINT = "constraint"
    DATA = "data"
    POLICY = "policy"


class Exclusion(StrEnum):
    """Why an action may not consider an otherwise possible victim."""

    NOT_PREEMPTABLE = "not_preemptable"
    NOT_LESS_URGENT = "not_less_urgent"
    QUEUE_NOT_RECLAIMABLE = "queue_not_reclaimable"
    GANG_NOT_WHOLE = "gang_not_whole"


@dataclass(frozen=True, slots=True)
class VictimCounts:
    """Possible victims for some pods, and why none was evicted. Each victim counts once.

    spared               by the plugin that did not allow it; under "" those that no plugin named
    insufficient         allowed, but all such victims of the node make no room for one pod
    not_enough_for_job   they make room for one pod, but not enough for the job to start
    excluded             in addition: pods that the action may not consider
    nodes                how many nodes were examined, of `candidate_nodes` where evictions might help
    """

    spared: Mapping[str, int] = field(default_factory=dict)
    insufficient: int = 0
    not_enough_for_job: int = 0
    excluded: Mapping[Exclusion, int] = field(default_factory=dict)
    nodes: int = 0
    candidate_nodes: int = 0

    @property
    def considered(self) -> int:
        """How many victims were considered."""
        return sum(self.spared.values()) + self.insufficient + self.not_enough_for_job


@dataclass(frozen=True, slots=True)
class PendingReason:
    """Why a job, or some of its pods, waits. Facts only; other modules turn them into sentences.

    `need` and `have`: amounts of the same resources; for `no_node_fits` of one pod, and the most that a usable node has
    free, or has at all if none is large enough. `free` of `limit`: what is free of what there is, on all usable nodes,
    in the cluster, the queue or the quota; `used`: of a quota. `pods`: how many pods find no place; `fitting`: how many
    of the gang would fit. `nodes`: number of nodes by refusal, for example `{"insufficient cpu": 3, "taint gpu=true":
    1}`; `usable`: those that only lack room. `queue`: the queue whose limit is reached. `ever` is False if less load
    cannot help: the job needs more than the cluster, its queue or any node has. `victims`: see `VictimCounts`.
    """

    cause: Cause
    action: str
    plugin: str
    code: str
    need: Resources = field(default_factory=Resources)
    have: Resources = field(default_factory=Resources)
    pods: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict)
    ever: bool = True
    victims: VictimCounts | None = None
    limit: Resources = field(default_factory=Resources)
    used: Resources = field(default_factory=Resources)
    free: Resources = field(default_factory=Resources)
    fitting: int = 0
    usable: int = 0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class ExtensionFault:
    """A plugin or action that failed: at which point, the error, and whether the cycle went on without it."""

    name: str
    point: str
    error: str
    is_skipped: bool


@dataclass(frozen=True, slots=True)
class Decisions:
    """The outcome of one cycle. `phases`: the phase of every job after the session closed.

    `pipelined`: the node of each pipelined pod. `nominated`: those of them for which other pods were evicted (in
    Volcano also after a failed try); the caller returns them as `PodSpec.nominated_node` until the pod is bound.
    `phases_before_close`: jobs whose phase changed at close. `counts`: pods of each job by status. `faults`: plugins
    and actions that failed. `refused`: invalid jobs with their problems.
    """

    binds: tuple[Bind, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pipelined: Mapping[str, str] = field(default_factory=dict)
    nominated: Mapping[str, str] = field(default_factory=dict)
    phases: Mapping[str, GangPhase] = field(default_factory=dict)
    phases_before_close: Mapping[str, GangPhase] = field(default_factory=dict)
    counts: Mapping[str, Mapping[PodStatus, int]] = field(default_factory=dict)
    reasons: Mapping[str, tuple[PendingReason, ...]] = field(default_factory=dict)
    faults: tuple[ExtensionFault, ...] = ()
    refused: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
