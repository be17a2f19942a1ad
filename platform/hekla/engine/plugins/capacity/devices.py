"""Devices that tasks claim by class (Kubernetes' dynamic resource allocation), where queues bound them.

A queue's capability names such a bound `deviceclass/<class>`. No node publishes these amounts, so they count here and
not where tasks are fitted onto nodes. A class that no queue names is not counted (`volcano-spec` §5.3).
"""

from collections.abc import Iterable

import numpy as np

from hekla.engine.accounts import DEVICE_CLASS
from hekla.engine.columns import Vector
from hekla.engine.gangs import ALLOCATED, Gang, Member
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_SWITCH = "capacity.DynamicResourceAllocationEnable"


class Demand:
    """What a task counts for in its queue: what it asks of a node and, where that is switched on, what it claims."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._nothing, self._dimensions = np.zeros_like(session.total), session.dimensions
        is_on = str(option.arguments.get(_SWITCH, False)).lower() == "true"
        self._classes = [name for name in session.dimensions.names if is_on and name.startswith(DEVICE_CLASS)]

    @property
    def counts_claims(self) -> bool:
        """Whether there is anything to count but requests."""
        return bool(self._classes)

    def of(self, member: Member) -> Vector:
        """All that one task counts for."""
        return member.request + self._claims(member) if self._classes and member.task.claims else member.request

    def together(self, members: Iterable[Member]) -> Vector:
        """All that these tasks count for."""
        return sum((self.of(member) for member in members), self._nothing)

    def claimed(self, gang: Gang) -> Vector:
        """What the placed tasks of a job have claimed."""
        placed = (member for member in gang.members if member.status in ALLOCATED)
        return sum((self._claims(member) for member in placed), self._nothing)

    def _claims(self, member: Member) -> Vector:
        claims = member.task.claims
        return self._dimensions.vector({name: claims.amount(name) for name in self._classes})
