"""Everything that is written to the event log: one frozen model a kind, the kind being the model's name.

The log is read by pages, by history and audit, and by the controller itself, and it is kept for long; so a payload
holds facts and no documents, unknown fields are refused, and every text is bounded. Who did it, when, in which tenant
and to which subject stands in the log's own columns, not here; neither does anything secret.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from hekla.domain.errors import Invalid, NotFound
from hekla.domain.phases import FlowPhase, GangPhase, JobPhase, PodPhase
from hekla.domain.policies import Action
from hekla.domain.validation import explain

MAX_MESSAGE = 2_000
MAX_DATA_BYTES = 32 * 1024

_Json = TypeVar("_Json")


def _storable(text: object) -> object:
    """Text that came from outside is mended, never refused: the fact must be recorded, and a database takes no NUL."""
    if not isinstance(text, str):
        return text
    text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return f"{text[: MAX_MESSAGE - 1]}…" if len(text) > MAX_MESSAGE else text


def _bounded(data: _Json) -> _Json:
    if len(json.dumps(data)) > MAX_DATA_BYTES:
        raise ValueError(f"An event carries at most {MAX_DATA_BYTES // 1024} KiB of data.")
    return data


Name = Annotated[str, Field(max_length=253)]
Message = Annotated[str, BeforeValidator(_storable), Field(max_length=MAX_MESSAGE)]
Data = Annotated[JsonValue, AfterValidator(_bounded)]


class Event(BaseModel):
    """One thing that happened. `payload` and `parse` carry it through the log."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str] = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401
        super().__pydantic_init_subclass__(**kwargs)
        cls.kind = cls.__name__
        if not cls.kind.startswith("_"):
            _KINDS[cls.kind] = cls

    def payload(self) -> dict[str, Any]:
        """As JSON-like data, without what is left at its default; `parse` reads it back."""
        return self.model_dump(mode="json", exclude_defaults=True)


_KINDS: dict[str, type[Event]] = {}


class UnknownKind(NotFound):
    """The log holds a kind of event that this version does not know."""

    code = "unknown_event"


def kinds() -> tuple[str, ...]:
    """The name of every kind of event."""
    return tuple(sorted(_KINDS))


def parse(kind: str, payload: Mapping[str, Any]) -> Event:
    """The event that was written as `kind` and `payload`. Raises UnknownKind, Invalid."""
    model = _KINDS.get(kind)
    if model is None:
        raise UnknownKind(f"There is no kind of event called “{kind[:80]}”.")
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        raise Invalid(explain(error, model)) from error


class Change(BaseModel):
    """What a field was and what it is now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    old: Data = None
    new: Data = None


Changes = Annotated[dict[str, Change], Field(max_length=128)]


# Jobs. The subject is the job.


class JobSubmitted(Event):
    name: Name
    queue: Name
    job_kind: Name = "training"
    replicas: int = 1


class JobCommanded(Event):
    """A person asked for an action: about the job, one task of it, or one replica of that."""

    action: Action
    task: Name = ""
    index: int | None = None
    message: Message = ""


class JobPhaseChanged(Event):
    """`said`: the message as facts, for who reads another language than English."""

    old: JobPhase
    new: JobPhase
    reason: Name = ""
    message: Message = ""
    said: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(_bounded)] = ()
    version: int = 1
    retry_count: int = 0


class GangPhaseChanged(Event):
    old: GangPhase
    new: GangPhase


class JobWaits(Event):
    """Why the job (or a part of it) does not start: the engine's reasons as data, and as one sentence."""

    reasons: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(_bounded)] = ()
    text: Message = ""


class JobChanged(Event):
    """The specification changed: its size, by `task.replicas`, `task.min_available` and `min_available`."""

    changes: Changes
    revision: int = 1


class JobDeleted(Event):
    """Somebody wished it, or its time to live is over. What is attached to it goes from now on."""

    name: Name


class JobCleaned(Event):
    """All that was attached to a deleted job is gone: its pods, their folders and addresses. Its logs are kept."""


class JobTagged(Event):
    """A word was put on the job, or taken off."""

    tag: Name
    is_on: bool = True


# Pods. The subject is their job.


class _PodEvent(Event):
    task: Name
    index: int
    attempt: int


class PodCreated(_PodEvent):
    address: Name = ""


class PodBound(_PodEvent):
    node: Name


class PodPhaseChanged(_PodEvent):
    old: PodPhase
    new: PodPhase
    reason: Name = ""
    message: Message = ""
    exit_code: int | None = None
    node: Name = ""


class PodStopRequested(_PodEvent):
    """`reason` tells which step of the lifecycle wished it."""

    reason: Name
    message: Message = ""


class Shift(BaseModel):
    """A share before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    before: float
    after: float


class Shares(BaseModel):
    """What an eviction did to the shares of who lost and who gained, as a plugin counts them; 1 is all of it.

    `of`: those of two queues, as parts of what they deserve, or of two jobs, as parts of the cluster. `taker` is None
    where nobody gains.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    plugin: Name
    of: Literal["queue", "job"]
    giver: Shift
    taker: Shift | None = None


class PodEvicted(_PodEvent):
    """The scheduler wants the pod's place: which action, by which plugins' leave, for which job; how shares moved.

    `for_job` is that job's uid; `for_name` its name where it belongs to the same tenant (to others it does not exist).
    """

    action: Name
    node: Name = ""
    for_job: Name = ""
    for_name: Name = ""
    plugins: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    shares: Annotated[tuple[Shares, ...], Field(max_length=8)] = ()


# Templates and flows. The subject is the template or the flow.


class JobTemplateCreated(Event):
    name: Name


class JobTemplateChanged(Event):
    """`fields`: what of the job is no longer as it was."""

    name: Name
    fields: Annotated[tuple[Name, ...], Field(max_length=64)] = ()


class JobTemplateDeleted(Event):
    name: Name


class FlowStarted(Event):
    name: Name
    steps: int


class FlowStepBegun(Event):
    """The step's job was submitted. `job` is its uid."""

    step: Name
    job: Name
    name: Name


class FlowStepRefused(Event):
    """The step is due, and its job could not be submitted; that is tried again."""

    step: Name
    message: Message


class FlowPhaseChanged(Event):
    old: FlowPhase
    new: FlowPhase


class FlowStopped(Event):
    """A person asked for its end."""

    name: Name


class FlowDeleted(Event):
    name: Name


# Batches. The subject is the batch.


class BatchSubmitted(Event):
    name: Name
    batch_kind: Name
    jobs: int


class BatchStopped(Event):
    """So many of its jobs were asked to stop."""

    name: Name
    jobs: int


class BatchRetried(Event):
    """So many of its jobs had failed and were submitted again."""

    name: Name
    jobs: int


# Schedules. The subject is the schedule.


class ScheduleCreated(Event):
    name: Name
    cron: Name
    time_zone: Name = "UTC"


class ScheduleChanged(Event):
    name: Name
    changes: Changes


class ScheduleSuspended(Event):
    name: Name


class ScheduleResumed(Event):
    name: Name


class ScheduleDeleted(Event):
    name: Name


class ScheduleRan(Event):
    """A run was started: because it was due, or by hand."""

    due_at: datetime
    job: Name
    by_hand: bool = False


class ScheduleSkipped(Event):
    """A run was due and did not start."""

    due_at: datetime
    reason: Name
    message: Message = ""


class ScheduleMissed(Event):
    """So many runs were due while nobody looked; they are not made up for."""

    first: datetime
    last: datetime
    count: int


# Demonstrations. The subject is their run.


class DemonstrationStarted(Event):
    name: Name


class DemonstrationEnded(Event):
    """All jobs of the run are over."""

    name: Name


# Queues, clusters and what belongs to them.


class QueueCreated(Event):
    name: Name
    cluster: Name = ""


class QueueChanged(Event):
    name: Name
    changes: Changes


class QueueOpened(Event):
    name: Name


class QueueClosed(Event):
    name: Name


class ClusterCreated(Event):
    name: Name
    backend: Name


class ClusterChanged(Event):
    name: Name
    changes: Changes


class NodeChanged(Event):
    """A machine came, went, or offers something else. `present` is False where it is gone."""

    node: Name
    ready: bool
    present: bool = True
    schedulable: bool = True
    message: Message = ""
    allocatable: Annotated[dict[Name, Name], Field(max_length=64)] = {}


class PolicyChanged(Event):
    """A new version of a cluster's scheduling policy is in force."""

    cluster: Name
    version: int
    message: Message = ""


class EnvironmentCreated(Event):
    name: Name


class EnvironmentChanged(Event):
    name: Name
    changes: Changes


class LeaseTaken(Event):
    epoch: int
    holder: Name


# People and tenants.


class TenantCreated(Event):
    name: Name


class TenantChanged(Event):
    name: Name
    changes: Changes


class LogsPurged(Event):
    """The logs of so many deleted jobs were removed: the tenant keeps none for longer."""

    jobs: int


class HistoryPurged(Event):
    """So many deleted jobs were removed with all that the log told of them: the tenant keeps none for longer."""

    jobs: int
    events: int


class MemberAdded(Event):
    username: Name
    role: Name


class MemberRemoved(Event):
    username: Name


class MemberRoleChanged(Event):
    username: Name
    old: Name
    new: Name


class UserCreated(Event):
    username: Name


class UserChanged(Event):
    username: Name
    changes: Changes


class SignedIn(Event):
    """`method` is how: password, link, token, or an identity provider's name."""

    username: Name
    method: Name
    address: Name = ""


class TokenCreated(Event):
    name: Name
    scopes: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    expires_at: datetime | None = None


class TokenRevoked(Event):
    name: Name
