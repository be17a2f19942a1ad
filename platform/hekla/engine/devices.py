"""Devices that are chosen one by one (Kubernetes' dynamic resource allocation): which there are, and who wants which.

A pod names claims, a claim has requests, and a request asks for devices of a class. Pods may share a claim, and so its
devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hekla.engine.conditions import NodeTerm

Key = tuple[str, str, str]
"""Driver, pool and name: what tells a device from all others."""
Value = bool | int | float | str
ByDomain = Mapping[str, Mapping[str, Value]]
"""By domain and name; what its driver named without a domain is in that of the driver."""


@dataclass(frozen=True, slots=True)
class Device:
    """`node_terms`: from where it can be reached; None: from anywhere. `capacity` in thousandths."""

    driver: str
    pool: str
    name: str
    node_terms: tuple[NodeTerm, ...] | None = None
    attributes: ByDomain = field(default_factory=dict)
    capacity: ByDomain = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.driver, self.pool, self.name


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """`count` devices, or all there are (None), that meet every selector; None: there is no such class."""

    name: str
    selectors: tuple[str, ...] | None = ()
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class Alike:
    """All devices of these requests (of all, where none is named) have the same value of the attribute."""

    attribute: tuple[str, str]
    requests: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """`allocated`: the devices that it has got, for pods on the nodes of `node_terms`; None: it has none yet."""

    requests: tuple[DeviceRequest, ...] = ()
    alike: tuple[Alike, ...] = ()
    allocated: tuple[Key, ...] | None = None
    node_terms: tuple[NodeTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices in the order in which they are tried; claims by namespace/name."""

    devices: tuple[Device, ...] = ()
    claims: Mapping[str, DeviceClaim] = field(default_factory=dict)
