"""Events of flows. The subject is the flow."""

from typing import Annotated

from hekla.domain.events.base import Event, Message, Name, Vocabulary
from hekla.domain.phases import FlowPhase


class FlowStarted(Event):
    name: Name
    steps: int


class FlowStepStarted(Event):
    """The step's job was submitted. `job` is its uid."""

    step: Name
    job: Name
    name: Name


class FlowStepRefused(Event):
    """The step is due, but its job could not be submitted; this is retried."""

    step: Name
    message: Message


class FlowPhaseChanged(Event):
    old: Annotated[FlowPhase, Vocabulary.PHASE]
    new: Annotated[FlowPhase, Vocabulary.PHASE]


class FlowStopped(Event):
    """A person stopped the flow."""

    name: Name


class FlowDeleted(Event):
    name: Name
