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
    """The credentials of the cluster were set; the event holds their public part only."""

    name: Name
    server: Annotated[str, Field(max_length=300)]
    holder: Name = ""
    fingerprint: Name


class ClusterKeyRemoved(Event):
    name: Name
    fingerprint: Name


class ClusterHealthChanged(Event):
    """A cluster became reachable or unreachable, or our permissions in it changed.

    `problem`: a code of `backends.base.Health`; `message`: details. `missing`: permissions.
    """

    name: Name
    reachable: bool
    problem: Name = ""
    message: Message = ""
    version: Name = ""
    has_namespace: bool | None = None
    missing: Annotated[list[Name], Field(max_length=64)] = []


class NodeChanged(Event):
    """A node was added, removed (`present` is False), or changed its condition, capacity, labels or taints.

    `models`: of its cards, by the resource that counts them, as far as its labels tell. These events are the history of
    capacity: the row of a node has only its present state.
    """

    node: Name
    ready: bool
    present: bool = True
    schedulable: bool = True
    message: Message = ""
    allocatable: Annotated[dict[Name, Name], Field(max_length=64)] = {}
    models: Annotated[dict[Name, Name], Field(max_length=64)] = {}
    taints: Annotated[tuple[Message, ...], Field(max_length=64)] = ()


class NodeLabelled(Event):
    """A person or an alert rule set or removed labels of a node. They are also in the labels that pods select."""

    node: Name
    labels: Annotated[dict[Message, Name], Field(max_length=16)] = {}
    removed: Annotated[tuple[Message, ...], Field(max_length=16)] = ()


class NodeDrained(Event):
    """A person cordoned the node and let its pods be evicted, for this reason. `pods`, `jobs`: how many they were."""

    node: Name
    reason: Message
    pods: int = 0
    jobs: int = 0


class ClusterObjectsChanged(Event):
    """Objects of a cluster that the scheduler reads were added, changed or removed: devices, claims, and so on."""

    kinds: Annotated[tuple[Name, ...], Field(max_length=16)]


class PolicyChanged(Event):
    """A new version of a cluster's scheduling policy is in force."""

    cluster: Name
    version: int
    message: Message = ""


class _PolicyLab(Event):
    """About an experiment of the policy lab. `run`: its uid."""

    run: Name
    title: Name = ""


class PolicyLabStarted(_PolicyLab):
    pass


class PolicyLabCancelled(_PolicyLab):
    pass


class PolicyLabDeleted(_PolicyLab):
    pass


class _LabTrace(Event):
    """About an uploaded workload of the policy lab, a file of another scheduler."""

    name: Name
    format: Name = ""


class LabTraceUploaded(_LabTrace):
    jobs: int = 0


class LabTraceDeleted(_LabTrace):
    pass


class EnvironmentCreated(Event):
    name: Name


class EnvironmentChanged(Event):
    name: Name
    changes: Changes


class LeaseAcquired(Event):
    epoch: int
    holder: Name
