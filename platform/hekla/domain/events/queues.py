"""Queues, federated queues and priority classes. The subject is the queue or the class."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Changes, Event, Name


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


class QueueDrained(Event):
    """From now on the queue admits no jobs; admitted jobs may finish."""

    name: Name


class FederatedQueueCreated(Event):
    """A name for queues of several clusters."""

    name: Name
    queues: Annotated[list[Name], Field(max_length=64)] = []


class FederatedQueueChanged(Event):
    name: Name
    changes: Changes


class FederatedQueueDeleted(Event):
    name: Name


class PriorityClassCreated(Event):
    name: Name
    value: int


class PriorityClassChanged(Event):
    name: Name
    changes: Changes


class PriorityClassDeleted(Event):
    name: Name
