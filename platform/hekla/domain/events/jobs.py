"""What happens to jobs, and to the lists and views of them. The subject is the job, where there is one."""

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from hekla.domain.events.base import Changes, Event, Message, Name, Vocabulary, bounded
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction


class JobSubmitted(Event):
    name: Name
    queue: Name
    job_kind: Name = "training"
    replicas: int = 1


Asked = Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(bounded)]
"""What each cluster said of a job (`domain.routing.PlacementCandidate`)."""


class JobPlaced(Event):
    """Of the queues that the name stands for, the job went to this one."""

    span: Name
    queue: Name
    cluster: Name
    asked: Asked = ()


class JobMoved(Event):
    """A job of which nothing had a place went to another cluster, where it begins anew."""

    span: Name
    queue: Name
    cluster: Name
    old_queue: Name
    old_cluster: Name
    asked: Asked = ()


class JobCommanded(Event):
    """A person asked for an action: about the job, one task of it, or one replica of that."""

    action: LifecycleAction
    task: Name = ""
    index: int | None = None
    message: Message = ""


class JobPhaseChanged(Event):
    """`said`: the message as facts, for who reads another language than English."""

    old: Annotated[JobPhase, Vocabulary.PHASE]
    new: Annotated[JobPhase, Vocabulary.PHASE]
    reason: Name = ""
    message: Message = ""
    said: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(bounded)] = ()
    version: int = 1
    retry_count: int = 0


class GangPhaseChanged(Event):
    old: Annotated[GangPhase, Vocabulary.PHASE]
    new: Annotated[GangPhase, Vocabulary.PHASE]


class JobWaits(Event):
    """Why the job (or a part of it) does not start: the engine's reasons as data, and as one sentence."""

    reasons: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(bounded)] = ()
    text: Message = ""


class JobDelayed(Event):
    """Pods of it have a place, and the cluster does not take them there yet, as it says in `message`."""

    message: Message = ""


class JobChanged(Event):
    """The specification changed: `priority`, or the size, by `task.replicas`, `task.min_available`, `min_available`."""

    changes: Changes
    revision: int = 1


class JobViewSaved(Event):
    """Somebody gave a list of jobs a name; `tenant`: whose members see it too."""

    name: Name
    tenant: Name = ""


class JobViewDeleted(Event):
    name: Name
    tenant: Name = ""


class JobListArranged(Event):
    """Somebody chose what their list of jobs shows. `opens_with`: the view that it begins with."""

    columns: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    opens_with: Name = ""


class JobDeleted(Event):
    """Somebody wished it, or its time to live is over. What is attached to it goes from now on."""

    name: Name


class JobCleaned(Event):
    """All that was attached to a deleted job is gone: its pods, their folders and addresses. Its logs are kept."""


class JobTagged(Event):
    """A word was put on the job, or taken off."""

    tag: Name
    is_on: bool = True
