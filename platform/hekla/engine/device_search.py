"""Find devices for claims, one by one: the first free ones that meet every condition, tried in their order."""

from collections.abc import Container, Iterator, Mapping, Sequence

from hekla.engine.device_selectors import selects
from hekla.engine.devices import Alike, Device, DeviceClaim, DeviceRequest, Key, Value

MAX_DEVICES = 32
"""That one claim may have (as in Kubernetes)."""
MAX_LOOKS = 10_000
"""Conditions among devices can make the search long; what is not found after so many looks is not found."""
Slot = tuple[str, DeviceRequest]
"""One device that is wanted: for which claim and request."""


class Unmet(Exception):
    """There are no such devices."""


class Search:
    """The devices that can be reached from one node, and which of them are taken."""

    def __init__(self, devices: Sequence[Device], taken: Container[Key]) -> None:
        self._devices, self._taken = devices, taken
        self._looks = 0

    def find(self, claims: Mapping[str, DeviceClaim]) -> dict[str, tuple[Device, ...]]:
        """Devices for each claim. Raises Unmet, and SelectorError where a condition cannot be answered."""
        self._looks = 0
        slots = [slot for name, claim in claims.items() for slot in self._slots(name, claim)]
        chosen = self._choose(claims, slots, [])
        if chosen is None:
            raise Unmet
        return {
            name: tuple(device for (of, _), device in zip(slots, chosen, strict=True) if of == name) for name in claims
        }

    def _slots(self, name: str, claim: DeviceClaim) -> Iterator[Slot]:
        wanted = [(request, self._count(request)) for request in claim.requests]
        if sum(count for _, count in wanted) > MAX_DEVICES:
            raise Unmet
        for request, count in wanted:
            yield from [(name, request)] * count

    def _count(self, request: DeviceRequest) -> int:
        """All means: all of them, and at least one; if one of them is taken, the slots do not suffice."""
        if request.selectors is None:
            raise Unmet
        return request.count or max(sum(_meets(device, request) for device in self._devices), 1)

    def _choose(
        self, claims: Mapping[str, DeviceClaim], slots: Sequence[Slot], chosen: list[Device]
    ) -> list[Device] | None:
        """Devices for all slots, those of the first ones being chosen already."""
        if len(chosen) == len(slots):
            return chosen
        name, request = slots[len(chosen)]
        for device in self._devices[self._first(slots, chosen) :]:
            if self._is_free(device, chosen) and _meets(device, request):
                more = [*chosen, device]
                if _are_alike(name, claims[name], slots, more):
                    found = self._choose(claims, slots, more)
                    if found is not None:
                        return found
        return None

    def _first(self, slots: Sequence[Slot], chosen: list[Device]) -> int:
        """Devices of one request are chosen in their order: another order of the same is nothing new."""
        at = len(chosen)
        return self._devices.index(chosen[-1]) + 1 if at and slots[at] == slots[at - 1] else 0

    def _is_free(self, device: Device, chosen: list[Device]) -> bool:
        self._looks += 1
        if self._looks > MAX_LOOKS:
            raise Unmet
        return device.key not in self._taken and all(device is not other for other in chosen)


def _meets(device: Device, request: DeviceRequest) -> bool:
    return all(selects(expression, device) for expression in request.selectors or ())


def _are_alike(name: str, claim: DeviceClaim, slots: Sequence[Slot], chosen: list[Device]) -> bool:
    own = [(request.name, device) for (of, request), device in zip(slots, chosen, strict=False) if of == name]
    return all(
        _is_one({_value(device, one) for of, device in own if not one.requests or of in one.requests})
        for one in claim.alike
    )


def _is_one(values: set[tuple[type, Value] | None]) -> bool:
    return None not in values and len(values) <= 1


def _value(device: Device, alike: Alike) -> tuple[type, Value] | None:
    domain, name = alike.attribute
    value = device.attributes.get(domain, {}).get(name)
    return None if value is None else (type(value), value)
