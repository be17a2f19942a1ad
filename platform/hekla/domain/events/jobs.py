"""Events of jobs, and of the lists and views of jobs. The subject is the job, if there is one."""

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from hekla.domain.events.base import Changes, Event, Message, Name, Vocabulary, bounded
from hekla.domain.events.evidence import Evidence
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import LifecycleAction


class JobSubmitted(Event):
    name: Name
    queue: Name
    job_kind: Name = "training"
    replicas: int = 1


Candidates = Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(bounded)]
"""The candidates of all clusters (`domain.routing.PlacementCandidate`), best first."""


class JobPlaced(Event):
    """The federated queue placed the job in this queue."""

    federated_queue: Name
    queue: Name
    cluster: Name
    candidates: Candidates = ()


class JobReassigned(Event):
    """A job without any placed pod was moved to another cluster, where it starts over."""

    federated_queue: Name
    queue: Name
    cluster: Name
    old_queue: Name
    old_cluster: Name
    candidates: Candidates = ()


class JobCommanded(Event):
    """A user requested an action on the job, one of its tasks, or one replica."""

    action: LifecycleAction
    task: Name = ""
    index: int | None = None
    message: Message = ""


class JobIdleWarned(Event):
    """The GPUs of the job are idle since then, and it is aborted at `ends_at` if that goes on."""

    idle_since: Name
    ends_at: Name
    evidence: Evidence = ()


class JobIdleAborted(Event):
    """The job is aborted, because its GPUs were idle since then."""

    idle_since: Name
    evidence: Evidence = ()


class JobKeepRequested(Event):
    """The actor keeps the job `until` then, also if its GPUs are idle, for this reason."""

    until: Name
    reason: Message


class OwnerReminded(Event):
    """The actor asks the owner to look at the job. `cause`: a `ReminderCause`."""

    cause: Name


class JobPhaseChanged(Event):
    """`message_facts`: the message as codes and values, to be rendered in other languages than English."""

    old: Annotated[JobPhase, Vocabulary.PHASE]
    new: Annotated[JobPhase, Vocabulary.PHASE]
    reason: Name = ""
    message: Message = ""
    message_facts: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(bounded)] = ()
    version: int = 1
    retry_count: int = 0


class GangPhaseChanged(Event):
    old: Annotated[GangPhase, Vocabulary.PHASE]
    new: Annotated[GangPhase, Vocabulary.PHASE]


class JobUnschedulable(Event):
    """The job, or a part of it, cannot be scheduled: the engine's reasons as data and as one sentence."""

    reasons: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=64), AfterValidator(bounded)] = ()
    text: Message = ""


class JobDelayed(Event):
    """Its pods are scheduled, but the cluster does not start them yet; `message` is the cluster's reason."""

    message: Message = ""


class JobChanged(Event):
    """The specification changed: `priority`, or the size, by `task.replicas`, `task.min_available`, `min_available`;
    or autoscaling, by `task.autoscaling.field`, whose values are null where it is off.

    Of external pods also `queue`, and without values `roles`, `sub_groups`, `network_topology`, `min_resources`.
    """

    changes: Changes
    revision: int = 1


class JobAutoscaled(Event):
    """Autoscaling changed the replicas of a task. `utilization`: of its cards in the last minute, in per cent."""

    task: Name
    old: int
    new: int
    utilization: float
    target: int
    revision: int = 1


class JobViewSaved(Event):
    """A user saved a view of the list of jobs. `tenant`: shared with its members."""

    name: Name
    tenant: Name = ""


class JobViewDeleted(Event):
    name: Name
    tenant: Name = ""


class JobListConfigured(Event):
    """A user arranged their list of jobs. `default_view`: the saved view that it opens with."""

    columns: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    default_view: Name = ""


class JobDeleted(Event):
    """By a user, or because its time to live has passed. Clean-up starts now."""

    name: Name


class JobCleanedUp(Event):
    """Pods, folders and addresses of a deleted job are gone. Its logs remain."""


class JobTagged(Event):
    """A tag was added, or removed if `is_on` is False."""

    tag: Name
    is_on: bool = True
