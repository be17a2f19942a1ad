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


class ClusterRemoved(Event):
    name: Name


class ClusterKeyAdded(Event):
    """From now on the cluster is reached with this key, which is told only by what may be shown of it."""

    name: Name
    server: Annotated[str, Field(max_length=300)]
    holder: Name = ""
    fingerprint: Name


class ClusterKeyRemoved(Event):
    name: Name
    fingerprint: Name


class ClusterHealthChanged(Event):
    """A cluster came within reach or left it, or lets us do more or less than before.

    `problem`: why it is out of reach, in a word of `backends.base.Health`; `message` says more. `missing`: rights.
    """

    name: Name
    reachable: bool
    problem: Name = ""
    message: Message = ""
    version: Name = ""
    has_namespace: bool | None = None
    missing: Annotated[list[Name], Field(max_length=64)] = []


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


class LeaseAcquired(Event):
    epoch: int
    holder: Name
