"""Allocates devices to claims: the first free ones, in order, that meet every selector and constraint."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from hekla.engine.device_selectors import selects
from hekla.engine.devices import Device, DeviceClaim, DeviceRequest, Key, MatchAttribute, Value

MAX_DEVICES = 32
"""Devices per claim (as in Kubernetes)."""
MAX_STEPS = 10_000
"""Constraints among devices can make the search long; it gives up after this many steps."""
Slot = tuple[str, DeviceRequest]
"""One device to find: for which claim and request."""


class DevicesUnavailable(Exception):
    """No devices meet the claims."""


class AllocatedDevice(NamedTuple):
    """A device, and the request of its claim that it meets."""

    request: str
    device: Device


class DeviceAllocator:
    """The devices reachable from one node; `allocated`: those in use."""

    def __init__(self, devices: Sequence[Device], allocated: Container[Key]) -> None:
        self._devices, self._allocated = devices, allocated
        self._steps = 0

    def find(self, claims: Mapping[str, DeviceClaim]) -> dict[str, tuple[AllocatedDevice, ...]]:
        """Devices for each claim. Raises DevicesUnavailable, and SelectorError if a selector cannot be evaluated."""
        self._steps = 0
        slots = [slot for name, claim in claims.items() for slot in self._slots(name, claim)]
        chosen = self._choose(claims, slots, [])
        if chosen is None:
            raise DevicesUnavailable
        pairs = list(zip(slots, chosen, strict=True))
        return {
            name: tuple(AllocatedDevice(request.name, device) for (of, request), device in pairs if of == name)
            for name in claims
        }

    def _slots(self, name: str, claim: DeviceClaim) -> Iterator[Slot]:
        wanted = [(request, self._count(request)) for request in claim.requests]
        if sum(count for _, count in wanted) > MAX_DEVICES:
            raise DevicesUnavailable
        for request, count in wanted:
            yield from [(name, request)] * count

    def _count(self, request: DeviceRequest) -> int:
        """The number of devices; for mode All every matching one, and at least one."""
        if request.selectors is None:
            raise DevicesUnavailable
        return request.count or max(sum(_matches(device, request) for device in self._devices), 1)

    def _choose(
        self, claims: Mapping[str, DeviceClaim], slots: Sequence[Slot], chosen: list[Device]
    ) -> list[Device] | None:
        """Devices for all slots, given those of the first ones; None if there are none."""
        if len(chosen) == len(slots):
            return chosen
        name, request = slots[len(chosen)]
        for device in self._devices[self._first(slots, chosen) :]:
            if self._is_free(device, chosen) and _matches(device, request):
                more = [*chosen, device]
                if _attributes_match(name, claims[name], slots, more):
                    found = self._choose(claims, slots, more)
                    if found is not None:
                        return found
        return None

    def _first(self, slots: Sequence[Slot], chosen: list[Device]) -> int:
        """Where to start: devices of one request are chosen in order, so that no set is tried twice."""
        at = len(chosen)
        return self._devices.index(chosen[-1]) + 1 if at and slots[at] == slots[at - 1] else 0

    def _is_free(self, device: Device, chosen: list[Device]) -> bool:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise DevicesUnavailable
        return device.key not in self._allocated and all(device is not other for other in chosen)


def _matches(device: Device, request: DeviceRequest) -> bool:
    return all(selects(expression, device) for expression in request.selectors or ())


def _attributes_match(name: str, claim: DeviceClaim, slots: Sequence[Slot], chosen: list[Device]) -> bool:
    own = [(request.name, device) for (of, request), device in zip(slots, chosen, strict=False) if of == name]
    for constraint in claim.match_attributes:
        values = {
            _value(device, constraint) for of, device in own if not constraint.requests or of in constraint.requests
        }
        if None in values or len(values) > 1:
            return False
    return True


def _value(device: Device, constraint: MatchAttribute) -> tuple[type, Value] | None:
    domain, name = constraint.attribute
    value = device.attributes.get(domain, {}).get(name)
    return None if value is None else (type(value), value)
