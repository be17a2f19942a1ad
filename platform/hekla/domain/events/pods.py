"""Events of pods. The subject is their job."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hekla.domain.events.base import Event, Message, Name, Vocabulary
from hekla.domain.events.evidence import Evidence
from hekla.domain.phases import PodPhase
from hekla.domain.sharing import GuestEnd


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
    reason: Message = ""
    message: Message = ""
    exit_code: int | None = None
    node: Name = ""


class PodStopRequested(_PodEvent):
    """`reason`: the step of the lifecycle that stops it."""

    reason: Name
    message: Message = ""


class TerminalEnd(StrEnum):
    """Why a terminal or an SSH connection ended."""

    EXIT = "exit"  # its program ended
    POD = "pod"  # the pod ended, or no longer answers
    CLOSED = "closed"  # its owner ended it
    CO_OWNER = "co_owner"  # an invited co-owner ended it
    IDLE = "idle"  # nobody typed, or no page showed it, for too long
    RIGHTS = "rights"  # its owner lost the permission, or their login ended
    STOPPED = "stopped"  # the console stopped


class ToolSessionEnd(StrEnum):
    """Why a session with a tool ended."""

    CLOSED = "closed"  # a person ended it
    POD = "pod"  # the pod ended
    TOOL = "tool"  # the tool ended by itself, or did not start
    IDLE = "idle"  # nobody and nothing used it


class ShareChange(BaseModel):
    """A share before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    before: float
    after: float


class EvictionShares(BaseModel):
    """The effect of an eviction on two shares, as a plugin computes them; 1 is all.

    `of`: shares of queues (of what they deserve) or of jobs (of the cluster). `taker`: None if no queue or job gains.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    plugin: Name
    of: Literal["queue", "job"]
    giver: ShareChange
    taker: ShareChange | None = None


class PodEvicted(_PodEvent):
    """The scheduler evicts the pod: the action, the plugins that allowed it, the job that gains, and the shares.

    `for_job`: that job's uid; `for_name`: its name, if it belongs to the same tenant. `message`: the reason of a person
    who drains its node (action `drain`).
    """

    action: Name
    node: Name = ""
    for_job: Name = ""
    for_name: Name = ""
    plugins: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    shares: Annotated[tuple[EvictionShares, ...], Field(max_length=8)] = ()
    message: Message = ""


class PodEvictionBlocked(_PodEvent):
    """A disruption budget blocked the eviction; `message` is the cluster's."""

    message: Message = ""


class FileUploaded(_PodEvent):
    """The actor wrote a file into the folder of the pod. `path`: below its working folder. `size`: in bytes."""

    path: Message
    size: int
    sha256: Name


class ReleaseReason(StrEnum):
    """Why the files of a failed pod are deleted."""

    TIME = "time"  # their time is over
    PERSON = "person"  # a person deleted them, or the job
    ROOM = "room"  # the failed pods of the tenant occupy too much space
    CLUSTER = "cluster"  # the cluster keeps no files of ended pods


class PodFrozen(_PodEvent):
    """The files and the environment of the failed pod stay `until` then. `size`: of the files in bytes."""

    until: datetime
    size: int = 0


class FrozenPodExtended(_PodEvent):
    """The actor lets the files of the failed pod stay longer: `until` then."""

    until: datetime


class FrozenPodOpened(_PodEvent):
    """The actor submitted a job that continues in the files of the failed pod. `debug_job`: its uid; `name`: its
    name.
    """

    debug_job: Name
    name: Name


class FrozenPodReleased(_PodEvent):
    """The files of the failed pod are deleted. `reason`: a `ReleaseReason`."""

    reason: ReleaseReason


class TerminalOpened(_PodEvent):
    """The actor opened a terminal in the pod. `terminal`: its id, which the event of its end repeats."""

    terminal: Name


class TerminalJoined(_PodEvent):
    """The actor typed in the terminal of another person, `owner`, for the first time."""

    terminal: Name
    owner: Name


class TerminalEnded(_PodEvent):
    """The terminal that the actor had opened has ended. `reason`: a `TerminalEnd`."""

    terminal: Name
    reason: TerminalEnd
    exit_code: int | None = None
    seconds: float = 0.0


class SshOpened(_PodEvent):
    """The actor connected to the pod by SSH. `connection`: its id, which the event of its end repeats."""

    connection: Name


class SshEnded(_PodEvent):
    """The SSH connection of the actor has ended. `commands`: how many it ran, file transfers included. `forwards`: how
    many connections to ports of the pod it made.
    """

    connection: Name
    reason: TerminalEnd
    commands: int = 0
    forwards: int = 0
    seconds: float = 0.0


class SessionOpened(_PodEvent):
    """The actor opened a session: a port of the pod in the browser. `session`: its uid, which its end repeats."""

    session: Name
    tool: Name
    port: int = 0


class SessionEnded(_PodEvent):
    """The session that `owner` had opened has ended. `reason`: a `ToolSessionEnd`. `evidence`: of an idle session."""

    session: Name
    tool: Name
    owner: Name
    reason: ToolSessionEnd
    evidence: Evidence = ()


class SessionIdleWarned(_PodEvent):
    """The session of `owner` is idle since then, and ends at `ends_at` if that goes on."""

    session: Name
    tool: Name
    owner: Name
    idle_since: Name
    ends_at: Name
    evidence: Evidence = ()


class SessionKeepRequested(_PodEvent):
    """The actor keeps the session `until` then, also if it is idle, for this reason."""

    session: Name
    tool: Name
    until: Name
    reason: Message


class GuestInvited(_PodEvent):
    """The actor invited `person` to a terminal or tool in the pod. `tool`: `terminal`, or a `Tool`."""

    guest: Name
    tool: Name
    person: Name
    role: Annotated[Name, Vocabulary.GUEST_ROLE]
    expires_at: datetime


class GuestAccepted(_PodEvent):
    """The actor accepted an invitation to the terminal or tool of `owner`."""

    guest: Name
    tool: Name
    owner: Name
    role: Annotated[Name, Vocabulary.GUEST_ROLE]


class GuestEnded(_PodEvent):
    """The invitation of `person` to a terminal or tool has ended. `reason`: a `GuestEnd`."""

    guest: Name
    tool: Name
    person: Name
    reason: GuestEnd


class JobForked(_PodEvent):
    """The actor submitted a job like that of the pod, with a copy of its files. `name`, `fork`: of the new job."""

    name: Name
    fork: Name


class RecordingStarted(_PodEvent):
    """The terminal of `owner` is recorded from now on, because the actor joined it."""

    recording: Name
    owner: Name


class RecordingCut(_PodEvent):
    """The actor made a recording of a part of another one, `source`."""

    recording: Name
    source: Name


class RecordingDeleted(_PodEvent):
    """A recording of the terminal of `owner` was deleted."""

    recording: Name
    owner: Name
