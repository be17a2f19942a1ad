"""Clusters, and what belongs to them: nodes, policies, environments, leases."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Changes, Event, Message, Name


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
