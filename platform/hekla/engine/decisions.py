"""What the engine answers: who goes where, who must yield, who is let in, and why the others wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hekla.domain.errors import Problem
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import TaskStatus


@dataclass(frozen=True, slots=True)
class Bind:
    """Start this task on this node, with these annotations (the cards it was given) on its pod."""

    job: str
    task: str
    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class Holder(StrEnum):
    """Whose share it is."""

    QUEUE = "queue"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Shift:
    """A share before and after: 1.0 is all that its holder deserves, or for a job all of the cluster."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Shares:
    """What an eviction did to the shares of who lost and who gained, as one plugin counts them.

    Evictions that were committed together are counted together, with the promises that they were for. `taker` is None
    where nobody gains, and the same as `giver` where both are one.
    """

    plugin: str
    of: Holder
    giver: Shift
    taker: Shift | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """Stop this task, for whom, by which action, and by which plugins' leave.

    `shares`: those of the two queues and, within one queue, of the two jobs, where plugins count them.
    """

    job: str
    task: str
    node: str
    action: str
    for_job: str = ""
    plugins: tuple[str, ...] = ()
    shares: tuple[Shares, ...] = ()


class Cause(StrEnum):
    """Who says no: the colour of a reason on the timeline."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    GANG = "gang"
    PRIORITY = "priority"
    CONSTRAINT = "constraint"
    DATA = "data"
    POLICY = "policy"


class Barred(StrEnum):
    """Why an action may not even consider somebody whom it otherwise would."""

    NOT_PREEMPTABLE = "not_preemptable"
    NOT_LESS_URGENT = "not_less_urgent"
    QUEUE_NOT_RECLAIMABLE = "queue_not_reclaimable"
    GANG_NOT_WHOLE = "gang_not_whole"


@dataclass(frozen=True, slots=True)
class Victims:
    """Whom an action might have evicted for such tasks, and why none of them went: each of them counts once.

    spared      by plugin those that it does not let go; under no name those that no plugin lets go
    too_little  those that may go and would still leave no room for one such task where they are
    in_vain     those that could make room for one such task, but not so that the job can start
    barred      beside the others: those that the action might not even consider
    nodes       how many nodes were looked at, of `of_nodes` on which evictions might have helped
    """

    spared: Mapping[str, int] = field(default_factory=dict)
    too_little: int = 0
    in_vain: int = 0
    barred: Mapping[Barred, int] = field(default_factory=dict)
    nodes: int = 0
    of_nodes: int = 0

    @property
    def considered(self) -> int:
        """How many there were."""
        return sum(self.spared.values()) + self.too_little + self.in_vain


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job (or some of its tasks) does not start, in facts; sentences are made elsewhere.

    `need` and `have` are amounts of the same resources; `nodes` counts nodes by the refusal they gave
    (`{"insufficient cpu": 3, "taint gpu=true": 1}`); `ever` is False where no change of load can help: the job asks
    for more than the cluster, its queue or any single node has. `victims`: who might have been evicted for it.
    `most` and `used`: of a bound that is met, what it is and what is used of it.
    """

    cause: Cause
    action: str
    plugin: str
    code: str
    need: Resources = field(default_factory=Resources)
    have: Resources = field(default_factory=Resources)
    tasks: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict)
    ever: bool = True
    victims: Victims | None = None
    most: Resources = field(default_factory=Resources)
    used: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class Fault:
    """A plugin or an action that failed: at which point, how, and whether the cycle went on without it."""

    name: str
    point: str
    error: str
    is_skipped: bool


@dataclass(frozen=True, slots=True)
class Decisions:
    """The outcome of one cycle. `phases` holds every job's gang phase after the session closed.

    `pipelined`: task to the node that it is promised. `nominated`: those of them for which others were evicted (in
    Volcano also those for which it was tried in vain); the caller gives them back as `Task.nominated_node` until they
    are bound. `phases_before_close` names the gangs whose phase closing changed; `counts` says how many tasks of each
    gang ended in which status.
    `faults`: what failed meanwhile. `refused`: jobs that make no sense, and were left out.
    """

    binds: tuple[Bind, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pipelined: Mapping[str, str] = field(default_factory=dict)
    nominated: Mapping[str, str] = field(default_factory=dict)
    phases: Mapping[str, GangPhase] = field(default_factory=dict)
    phases_before_close: Mapping[str, GangPhase] = field(default_factory=dict)
    counts: Mapping[str, Mapping[TaskStatus, int]] = field(default_factory=dict)
    reasons: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    refused: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
