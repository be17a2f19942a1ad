"""Devices and claims of Kubernetes' dynamic resource allocation.

A pod names claims, a claim has requests, and a request asks for devices of a class. Pods may share a claim and its
devices. Devices that are parts of the same hardware consume the same counters.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.taints import Taint
from hekla.engine.constraints import NodeSelectorTerm

Key = tuple[str, str, str]
"""Driver, pool and name: unique per device."""
Value = bool | int | float | str
Counter = tuple[str, str, str, str]
"""Driver, pool, counter set and name."""
ByDomain = Mapping[str, Mapping[str, Value]]
"""Values by domain and name; the driver's name is the default domain."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device. `node_terms`: the nodes that can use it; None: all. `capacity` in thousandths.

    `taints`: only requests that tolerate them get it. `consumes`: what it takes of counters, in thousandths, as long as
    it is allocated.
    """

    driver: str
    pool: str
    name: str
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    attributes: ByDomain = field(default_factory=dict)
    capacity: ByDomain = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    consumes: Mapping[Counter, float] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.driver, self.pool, self.name


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for `count` devices (None: all) that meet every selector.

    `selectors` None: nothing meets it, because its class is unknown or a part of it is not supported. `is_admin`: also
    devices in use, without being a use itself. `tolerations`: as written. `alternatives`: instead of what the request
    itself asks for, the first of these that can be met; they are named `request/alternative`.
    """

    name: str
    selectors: tuple[str, ...] | None = ()
    count: int | None = 1
    is_admin: bool = False
    tolerations: tuple[Mapping[str, Any], ...] = ()
    alternatives: tuple["DeviceRequest", ...] = ()


@dataclass(frozen=True, slots=True)
class MatchAttribute:
    """A constraint: all devices of these requests (of all, if none is named) share the value of the attribute."""

    attribute: tuple[str, str]
    requests: frozenset[str] = frozenset()

    def concerns(self, request: str) -> bool:
        """Whether it is about the devices of this request or alternative."""
        return not self.requests or not self.requests.isdisjoint((request, request.partition("/")[0]))


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A resource claim. `allocated`: the devices that it uses, on the nodes of `node_terms`; None: not allocated."""

    requests: tuple[DeviceRequest, ...] = ()
    match_attributes: tuple[MatchAttribute, ...] = ()
    allocated: tuple[Key, ...] | None = None
    node_terms: tuple[NodeSelectorTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices in the order in which they are tried, claims by namespace/name, and the whole of each counter."""

    devices: tuple[Device, ...] = ()
    claims: Mapping[str, DeviceClaim] = field(default_factory=dict)
    counters: Mapping[Counter, float] = field(default_factory=dict)

    def free_counters(self, in_use: Container[Key]) -> dict[Counter, float]:
        """What is left of each counter while these devices are in use."""
        return remaining(self.counters, (device for device in self.devices if device.key in in_use))


def remaining(free: Mapping[Counter, float], devices: Iterable[Device]) -> dict[Counter, float]:
    """What is left of counters after these devices; less than 0 if too little, or if there is no such counter."""
    left = defaultdict(float, free)
    for device in devices:
        for counter, amount in device.consumes.items():
            left[counter] -= amount
    return left
