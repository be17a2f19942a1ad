"""Allocates devices to claims: the first free ones, in order, that meet every selector and constraint.

As Kubernetes' scheduler does: the alternatives of a request are tried in their order; devices with a taint go to
requests that tolerate it; devices that consume counters need enough of them; a request for admin access gets devices in
use, too.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from hekla.domain.taints import Taint, TaintEffect
from hekla.engine.device_selectors import selects
from hekla.engine.devices import (
    Counter,
    Device,
    DeviceClaim,
    DeviceRequest,
    Key,
    MatchAttribute,
    Value,
)

MAX_DEVICES = 32
"""Devices per claim (as in Kubernetes)."""
MAX_STEPS = 10_000
"""Constraints among devices can make the search long; it gives up after this many steps."""
_KEEPING_AWAY = frozenset({TaintEffect.NO_SCHEDULE.value, TaintEffect.NO_EXECUTE.value})


class DevicesUnavailable(Exception):
    """No devices meet the claims."""


class SearchTooLong(DevicesUnavailable):
    """None were found within the limits of the search."""


class AllocatedDevice(NamedTuple):
    """A device, and the request of its claim that it meets, or the alternative of the request."""

    request: DeviceRequest
    device: Device


class _Option(NamedTuple):
    """A request or an alternative of one: the devices to choose from, and how many."""

    request: DeviceRequest
    devices: Sequence[Device]
    number: int


class _Wanted(NamedTuple):
    """A request of a claim, and the options to meet it."""

    claim: str
    options: tuple[_Option, ...]


class _Chosen(NamedTuple):
    claim: str
    request: DeviceRequest
    device: Device


class DeviceAllocator:
    """The devices reachable from one node; `allocated`: those in use; `counters`: what is left of them."""

    def __init__(
        self,
        devices: Sequence[Device],
        allocated: Container[Key],
        counters: Mapping[Counter, float] | None = None,
        *,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self._devices, self._allocated, self._counters = devices, allocated, counters or {}
        self._claims: Mapping[str, DeviceClaim] = {}
        self._wanted: list[_Wanted] = []
        self._steps, self._max_steps = 0, max_steps

    def find(self, claims: Mapping[str, DeviceClaim]) -> dict[str, tuple[AllocatedDevice, ...]]:
        """Devices for each claim. Raises DevicesUnavailable, SearchTooLong, and SelectorError if a selector cannot be
        evaluated.
        """
        self._steps, self._claims = 0, claims
        self._wanted = [
            _Wanted(name, tuple(map(self._option, request.alternatives or (request,))))
            for name, claim in claims.items()
            for request in claim.requests
        ]
        try:
            chosen = self._choose(0, [])
        except RecursionError as error:  # hundreds of devices for one pod
            raise SearchTooLong from error
        if chosen is None:
            raise DevicesUnavailable
        return {
            name: tuple(AllocatedDevice(one.request, one.device) for one in chosen if one.claim == name)
            for name in claims
        }

    def _option(self, request: DeviceRequest) -> _Option:
        """For mode All every matching device, and at least one."""
        if request.selectors is None:
            raise DevicesUnavailable
        if request.count:
            return _Option(request, self._devices, request.count)
        matching = [device for device in self._devices if _matches(device, request)]
        return _Option(request, matching, max(len(matching), 1))

    def _choose(self, at: int, chosen: list[_Chosen]) -> list[_Chosen] | None:
        """Devices for all requests, given those of the first ones; None if there are none."""
        if at == len(self._wanted):
            return chosen
        name, options = self._wanted[at]
        room = MAX_DEVICES - sum(one.claim == name for one in chosen)
        for option in options:
            found = self._fill(at, option, option.number, 0, chosen) if option.number <= room else None
            if found is not None:
                return found
        return None

    def _fill(self, at: int, option: _Option, count: int, start: int, chosen: list[_Chosen]) -> list[_Chosen] | None:
        """The same, after so many devices more for this request. They are chosen in order, so no set is tried twice,
        and none that cannot become complete.
        """
        if not count:
            return self._choose(at + 1, chosen)
        claim, request = self._wanted[at].claim, option.request
        last = max(len(option.devices) - count + 1, 0)
        for place, device in enumerate(option.devices[start:last], start + 1):
            if self._is_free(device, claim, request, chosen) and _matches(device, request):
                more = [*chosen, _Chosen(claim, request, device)]
                if self._is_allowed(more):
                    found = self._fill(at, option, count - 1, place, more)
                    if found is not None:
                        return found
        return None

    def _is_free(self, device: Device, claim: str, request: DeviceRequest, chosen: Sequence[_Chosen]) -> bool:
        self._steps += 1
        if self._steps > self._max_steps:
            raise SearchTooLong
        if request.is_admin:
            return all(device is not other.device for other in chosen if other.claim == claim)
        return device.key not in self._allocated and all(device is not other.device for other in chosen)

    def _is_allowed(self, chosen: Sequence[_Chosen]) -> bool:
        """Whether the last device is tolerated, and leaves enough of its counters and equal attributes."""
        last = chosen[-1]
        if any(
            taint.effect in _KEEPING_AWAY and not any(_tolerates(one, taint) for one in last.request.tolerations)
            for taint in last.device.taints
        ):
            return False
        if not all(self._has_enough(counter, chosen) for counter in last.device.consumes):
            return False
        return _attributes_match(self._claims[last.claim], [one for one in chosen if one.claim == last.claim])

    def _has_enough(self, counter: Counter, chosen: Sequence[_Chosen]) -> bool:
        """Whether there is such a counter, with enough left. Reads no others: a cluster may have very many."""
        return sum(one.device.consumes.get(counter, 0.0) for one in chosen) <= self._counters.get(counter, 0.0)


def _matches(device: Device, request: DeviceRequest) -> bool:
    return all(selects(expression, device) for expression in request.selectors or ())


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """As for nodes: an empty key or effect matches all."""
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == taint.value


def _attributes_match(claim: DeviceClaim, chosen: Sequence[_Chosen]) -> bool:
    for constraint in claim.match_attributes:
        values = {_value(one.device, constraint) for one in chosen if constraint.concerns(one.request.name)}
        if None in values or len(values) > 1:
            return False
    return True


def _value(device: Device, constraint: MatchAttribute) -> tuple[type, Value] | None:
    domain, name = constraint.attribute
    value = device.attributes.get(domain, {}).get(name)
    return None if value is None else (type(value), value)
