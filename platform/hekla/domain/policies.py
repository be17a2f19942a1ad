"""Lifecycle events, lifecycle actions, and the policies that connect them.

The names are Volcano's, as in manifests. A policy has either events or an exit code. The policies of a pod's task come
before those of its job, and the first match decides.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hekla.domain.field_types import SchemaKeywords
from hekla.domain.translation import translate
from hekla.domain.validation import not_one_of


class LifecycleEvent(StrEnum):
    """An event of a job or of one of its pods."""

    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    JOB_UPDATED = "JobUpdated"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"


class LifecycleAction(StrEnum):
    """An action on a job."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"


INTERNAL_EVENTS = frozenset({LifecycleEvent.POD_RUNNING, LifecycleEvent.OUT_OF_SYNC, LifecycleEvent.COMMAND_ISSUED})
PARTIAL_ACTIONS = frozenset(
    {LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD, LifecycleAction.RESTART_PARTITION}
)
POLICY_EVENTS = tuple(event for event in LifecycleEvent if event not in INTERNAL_EVENTS)
POLICY_ACTIONS = tuple(action for action in LifecycleAction if action is not LifecycleAction.SYNC_JOB)


def _among(choices: Sequence[str]) -> BeforeValidator:
    """Accept only the choices; the message names no internal values."""

    def check(value: object) -> object:
        if value not in choices:
            raise ValueError(not_one_of(value, choices))
        return value

    return BeforeValidator(check)


def _without(internal: Iterable[str]) -> SchemaKeywords:
    """Say in the JSON schema that these values are refused."""
    return SchemaKeywords({"not": {"enum": sorted(internal)}})


def _listed(value: object) -> object:
    """A single event may be written without a list."""
    return [value] if isinstance(value, str) else value


class LifecyclePolicy(BaseModel):
    """An action on events or an exit code; with `timeout_seconds`, only if the condition holds after that time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: Annotated[
        tuple[Annotated[LifecycleEvent, _among(POLICY_EVENTS), _without(INTERNAL_EVENTS)], ...],
        Field(max_length=16),
        BeforeValidator(_listed),
    ] = ()
    exit_code: Annotated[int, Field(strict=True, ge=-255, le=255)] | None = None
    action: Annotated[LifecycleAction, _among(POLICY_ACTIONS), _without({LifecycleAction.SYNC_JOB})]
    timeout_seconds: Annotated[int, Field(strict=True, ge=1, le=30 * 86_400)] | None = None

    @model_validator(mode="after")
    def _well_formed(self) -> "LifecyclePolicy":
        if self.events and self.exit_code is not None:
            raise ValueError(translate("A policy has either events or an exit code, not both."))
        if not self.events and self.exit_code is None:
            raise ValueError(translate("A policy needs events or an exit code."))
        if self.exit_code == 0:
            raise ValueError(translate("Exit code 0 means success. Use another exit code."))
        if LifecycleEvent.UNKNOWN in self.events and self.timeout_seconds:
            raise ValueError(translate("A policy for Unknown acts immediately and cannot have a timeout."))
        return self

    def matches(self, event: LifecycleEvent, exit_code: int | None) -> bool:
        """Whether this policy applies to the event.

        PodPending counts only with a timeout. `*` excludes JobUpdated, a change of size, which is not a failure.
        """
        if self.exit_code is not None:
            return exit_code == self.exit_code
        if event is LifecycleEvent.POD_PENDING and self.timeout_seconds is None:
            return False
        return event in self.events or (LifecycleEvent.ANY in self.events and event is not LifecycleEvent.JOB_UPDATED)


def contradictions(policies: Iterable[LifecyclePolicy]) -> list[tuple[int, str]]:
    """The indexes of policies that conflict with the rest of the list, each with a sentence."""
    found: list[tuple[int, str]] = []
    events: set[LifecycleEvent] = set()
    codes: set[int] = set()
    for place, policy in enumerate(policies):
        found += [
            (place, translate("An earlier policy covers {event}.", event=event))
            for event in policy.events
            if event in events
        ]
        if policy.exit_code is not None and policy.exit_code in codes:
            found.append((place, translate("An earlier policy covers exit code {code}.", code=policy.exit_code)))
        if policy.events and LifecycleEvent.ANY in {*events, *policy.events} and (events or len(policy.events) > 1):
            found.append((place, translate("“*” matches every event, so it must be the only event in the list.")))
        events.update(policy.events)
        if policy.exit_code is not None:
            codes.add(policy.exit_code)
    return found
