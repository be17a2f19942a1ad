"""What happens to pods. The subject is their job."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hekla.domain.events.base import Event, Message, Name, Vocabulary
from hekla.domain.phases import PodPhase


class _PodEvent(Event):
    task: Name
    index: int
    attempt: int


class PodCreated(_PodEvent):
    address: Name = ""


class PodBound(_PodEvent):
    node: Name


class PodPhaseChanged(_PodEvent):
    old: Annotated[PodPhase, Vocabulary.PHASE]
    new: Annotated[PodPhase, Vocabulary.PHASE]
    reason: Name = ""
    message: Message = ""
    exit_code: int | None = None
    node: Name = ""


class PodStopRequested(_PodEvent):
    """`reason` tells which step of the lifecycle wished it."""

    reason: Name
    message: Message = ""


class ShareChange(BaseModel):
    """A share before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    before: float
    after: float


class EvictionShares(BaseModel):
    """What an eviction did to the shares of who lost and who gained, as a plugin counts them; 1 is all of it.

    `of`: those of two queues, as parts of what they deserve, or of two jobs, as parts of the cluster. `taker` is None
    where nobody gains.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    plugin: Name
    of: Literal["queue", "job"]
    giver: ShareChange
    taker: ShareChange | None = None


class PodEvicted(_PodEvent):
    """The scheduler wants the pod's place: which action, by which plugins' leave, for which job; how shares moved.

    `for_job` is that job's uid; `for_name` its name where it belongs to the same tenant (to others it does not exist).
    """

    action: Name
    node: Name = ""
    for_job: Name = ""
    for_name: Name = ""
    plugins: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    shares: Annotated[tuple[EvictionShares, ...], Field(max_length=8)] = ()


class PodEvictionBlocked(_PodEvent):
    """The pod was to go, and stays: a budget of disruptions keeps it, as the cluster says in `message`."""

    message: Message = ""
