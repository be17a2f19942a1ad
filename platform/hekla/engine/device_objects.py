"""Reads devices, device classes and resource claims from Kubernetes objects of `resource.k8s.io`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hekla.domain.cluster_objects import ObjectKind
from hekla.domain.resources import Resources, parse_quantity
from hekla.domain.taints import Taint
from hekla.engine.constraints import NodeSelectorTerm, Requirement
from hekla.engine.devices import ByDomain, Counter, Device, DeviceClaim, DeviceRequest, Devices, MatchAttribute, Value
from hekla.engine.pod_objects import node_terms
from hekla.engine.queue_attributes import DEVICE_CLASS_PREFIX

Object = Mapping[str, Any]
LISTS: Mapping[ObjectKind, str] = {
    ObjectKind.RESOURCE_SLICE: "resourceSlices",
    ObjectKind.DEVICE_CLASS: "deviceClasses",
    ObjectKind.RESOURCE_CLAIM: "resourceClaims",
}
"""The fields of a cluster that `devices` reads."""
_NOWHERE: tuple[NodeSelectorTerm, ...] = ()
_KINDS = ("bool", "int", "string", "version")
_MODES = ("", "ExactCount", "All")
_UNSUPPORTED = ("allowMultipleAllocations", "bindingConditions")
"""Fields of devices. Devices with one of them are not allocated."""
_PLACES = ("nodeName", "nodeSelector", "allNodes")


def devices(cluster: Object) -> Devices:
    """All devices and claims of a cluster."""
    classes = {one["metadata"]["name"]: _selectors(one["spec"]) for one in cluster.get("deviceClasses") or ()}
    claims = cluster.get("resourceClaims") or ()
    return Devices(
        devices=tuple(_devices(cluster.get("resourceSlices") or ())),
        claims={f"{one['metadata']['namespace']}/{one['metadata']['name']}": _claim(one, classes) for one in claims},
        counters=dict(_counters(cluster.get("resourceSlices") or ())),
    )


def unsupported_fields(cluster: Object) -> list[str]:
    """Fields used by claims and devices that the engine does not support."""
    found = [word for slice_ in cluster.get("resourceSlices") or () for word in _unsupported_in_slice(slice_["spec"])]
    specs = [one["spec"].get("devices") or {} for one in cluster.get("resourceClaims") or ()]
    found += [word for spec in specs for word in _unsupported_in_claim(spec)]
    return found


def _unsupported_in_slice(spec: Object) -> Iterator[str]:
    for device in map(_basic, spec.get("devices") or ()):
        yield from (f"{word} of devices" for word in _UNSUPPORTED if device.get(word))


def _unsupported_in_claim(spec: Object) -> Iterator[str]:
    for request in spec.get("requests") or ():
        for one in request.get("firstAvailable") or (_exactly(request),):
            if one.get("capacity"):
                yield "capacity of claims"
            if one.get("allocationMode", "") not in _MODES:
                yield f"allocationMode {one['allocationMode']}"
    yield from ("constraints of claims" for one in spec.get("constraints") or () if "matchAttribute" not in one)


def _selectors(spec: Object) -> tuple[str, ...]:
    return tuple(one["cel"]["expression"] for one in spec.get("selectors") or ())


def _devices(slices: Iterable[Object]) -> Iterator[Device]:
    for spec in _complete_pools(slices):
        for device in spec.get("devices") or ():
            if not any(_basic(device).get(field) for field in _UNSUPPORTED):
                yield _device(spec, device)


def _counters(slices: Iterable[Object]) -> Iterator[tuple[Counter, float]]:
    """The counters that devices of a pool share."""
    for spec in _complete_pools(slices):
        for one in spec.get("sharedCounters") or ():
            yield from _amounts(spec, one["name"], one.get("counters") or {})


def _amounts(spec: Object, set_name: str, counters: Mapping[str, Any]) -> Iterator[tuple[Counter, float]]:
    for name, written in counters.items():
        yield (spec["driver"], spec["pool"]["name"], set_name, name), _thousandths(written)


def _complete_pools(slices: Iterable[Object]) -> Iterator[Object]:
    """The slices of the newest generation of each pool, if all of them exist."""
    pools: dict[tuple[str, str], dict[int, list[Object]]] = defaultdict(lambda: defaultdict(list))
    for spec in (one["spec"] for one in slices):
        pool = spec["pool"]
        pools[spec["driver"], pool["name"]][int(pool.get("generation", 0))].append(spec)
    for generations in pools.values():
        newest = generations[max(generations)]
        if len(newest) >= max(int(spec["pool"].get("resourceSliceCount", 1)) for spec in newest):
            yield from newest


def _device(spec: Object, device: Object) -> Device:
    basic = _basic(device)
    capacity = {name: _thousandths(written) for name, written in (basic.get("capacity") or {}).items()}
    attributes = {
        name: value
        for name, written in (basic.get("attributes") or {}).items()
        if (value := _value(written)) is not None
    }
    return Device(
        driver=spec["driver"],
        pool=spec["pool"]["name"],
        name=device["name"],
        node_terms=_reachable_from({**spec, **({name: basic[name] for name in _PLACES if name in basic})}),
        attributes=_by_domain(spec["driver"], attributes),
        capacity=_by_domain(spec["driver"], capacity),
        taints=tuple(Taint(one["key"], one.get("value", ""), one["effect"]) for one in basic.get("taints") or ()),
        consumes=_consumed(spec, basic.get("consumesCounters") or ()),
    )


def _consumed(spec: Object, consumed: Iterable[Object]) -> Mapping[Counter, float]:
    total: dict[Counter, float] = defaultdict(float)
    for one in consumed:
        for counter, amount in _amounts(spec, one["counterSet"], one.get("counters") or {}):
            total[counter] += amount
    return dict(total)


def _basic(device: Object) -> Object:
    """The attributes of a device; older versions of the API wrap them in `basic`."""
    basic: Object = device.get("basic") or device
    return basic


def _reachable_from(spec: Object) -> tuple[NodeSelectorTerm, ...] | None:
    if spec.get("allNodes"):
        return None
    if name := spec.get("nodeName"):
        return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (name,)),)),)
    return node_terms(spec["nodeSelector"]) if spec.get("nodeSelector") else _NOWHERE


def _by_domain(driver: str, values: Mapping[str, Value]) -> ByDomain:
    found: dict[str, dict[str, Value]] = defaultdict(dict)
    for written, value in values.items():
        domain, _, name = written.rpartition("/")
        found[domain or driver][name] = value
    return dict(found)


def _value(written: Object) -> Value | None:
    """The value of an attribute; None if its type is not supported."""
    value: Value | None = next((written[kind] for kind in _KINDS if kind in written), None)
    return value


def _thousandths(written: Object | str) -> float:
    return parse_quantity("", written["value"] if isinstance(written, Mapping) else written)


def _claim(claim: Object, classes: Mapping[str, tuple[str, ...]]) -> DeviceClaim:
    spec = claim["spec"].get("devices") or {}
    allocation = (claim.get("status") or {}).get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return DeviceClaim(
        requests=tuple(_request(request, classes) for request in spec.get("requests") or ()),
        match_attributes=tuple(
            _match_attribute(one) for one in spec.get("constraints") or () if "matchAttribute" in one
        ),
        allocated=None
        if allocation is None
        else tuple((one["driver"], one["pool"], one["device"]) for one in results if not one.get("adminAccess")),
        node_terms=node_terms((allocation or {}).get("nodeSelector")),
    )


def _exactly(request: Object) -> Object:
    """The request itself; newer versions of the API wrap it in `exactly`."""
    exactly: Object = request.get("exactly") or request
    return exactly


def _request(request: Object, classes: Mapping[str, tuple[str, ...]]) -> DeviceRequest:
    name, alternatives = request["name"], request.get("firstAvailable") or ()
    if not alternatives:
        return _exact_request(name, _exactly(request), classes)
    each = tuple(_exact_request(f"{name}/{one['name']}", one, classes) for one in alternatives)
    return DeviceRequest(name, None if any(one.selectors is None for one in each) else (), alternatives=each)


def _exact_request(name: str, exactly: Object, classes: Mapping[str, tuple[str, ...]]) -> DeviceRequest:
    of_class = classes.get(exactly.get("deviceClassName", ""))
    return DeviceRequest(
        name=name,
        selectors=None if of_class is None or exactly.get("capacity") else (*of_class, *_selectors(exactly)),
        count=None if exactly.get("allocationMode") == "All" else int(exactly.get("count") or 1),
        is_admin=bool(exactly.get("adminAccess")),
        tolerations=tuple(exactly.get("tolerations") or ()),
    )


def _match_attribute(constraint: Object) -> MatchAttribute:
    domain, _, name = constraint["matchAttribute"].rpartition("/")
    return MatchAttribute((domain, name), frozenset(constraint.get("requests") or ()))


def claimed_devices(cluster: Object, pod: Object) -> Resources:
    """The devices that a pod claims, by class; claims without an object do not count."""
    if not (own := pod["spec"].get("resourceClaims")):
        return Resources()
    wanted = {(pod["metadata"]["namespace"], claim.get("resourceClaimName")) for claim in own}
    claims = cluster.get("resourceClaims", ())
    return sum(
        (_device_counts(c) for c in claims if (c["metadata"]["namespace"], c["metadata"]["name"]) in wanted),
        Resources(),
    )


def _device_counts(claim: Object) -> Resources:
    total = Resources()
    for request in claim["spec"].get("devices", {}).get("requests", ()):
        exactly = request.get("exactly", request)
        if "deviceClassName" in exactly:
            total += Resources.parse({DEVICE_CLASS_PREFIX + exactly["deviceClassName"]: exactly.get("count", 1)})
    return total
