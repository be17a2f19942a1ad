"""Devices and claims of Kubernetes' dynamic resource allocation.

A pod names claims, a claim has requests, and a request asks for devices of a class. Pods may share a claim and its
devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hekla.engine.constraints import NodeSelectorTerm

Key = tuple[str, str, str]
"""Driver, pool and name: unique per device."""
Value = bool | int | float | str
ByDomain = Mapping[str, Mapping[str, Value]]
"""Values by domain and name; the driver's name is the default domain."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device. `node_terms`: the nodes that can use it; None: all. `capacity` in thousandths."""

    driver: str
    pool: str
    name: str
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    attributes: ByDomain = field(default_factory=dict)
    capacity: ByDomain = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.driver, self.pool, self.name


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for `count` devices (None: all) that meet every selector.

    `selectors` None: nothing meets it, because its class is unknown or a part of it is not supported.
    """

    name: str
    selectors: tuple[str, ...] | None = ()
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class MatchAttribute:
    """A constraint: all devices of these requests (of all, if none is named) share the value of the attribute."""

    attribute: tuple[str, str]
    requests: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A resource claim. `allocated`: its devices, usable on the nodes of `node_terms`; None: not allocated."""

    requests: tuple[DeviceRequest, ...] = ()
    match_attributes: tuple[MatchAttribute, ...] = ()
    allocated: tuple[Key, ...] | None = None
    node_terms: tuple[NodeSelectorTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices in the order in which they are tried, and claims by namespace/name."""

    devices: tuple[Device, ...] = ()
    claims: Mapping[str, DeviceClaim] = field(default_factory=dict)
