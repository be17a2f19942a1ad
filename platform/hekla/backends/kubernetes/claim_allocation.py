"""Allocate the claims of a pod before it is bound, as a scheduler must: devices on its node, reserved for the pod.

Kubernetes' controllers make claims from templates, and release them when the pod has ended. The status of a claim is
written only in the version that was read, so nobody else's allocation is overwritten.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from hekla.backends.base import BackendError, PodOrder, StartDelayed
from hekla.backends.kubernetes.api import CONFLICT, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.device_store import DeviceStore
from hekla.backends.kubernetes.layout import NamespaceLayout
from hekla.backends.kubernetes.node_labels import labels_of
from hekla.domain.cluster_objects import ObjectKind
from hekla.domain.runtime_settings import ResourceClaim
from hekla.engine import device_objects
from hekla.engine.constraints import Selector
from hekla.engine.device_allocator import AllocatedDevice, DeviceAllocator, DevicesUnavailable
from hekla.engine.device_selectors import SelectorError
from hekla.engine.devices import Device, Devices, Key

FINALIZER = "resource.kubernetes.io/delete-protection"
MAX_USERS = 256
"""Pods for which a claim can be reserved."""
_MADE_WITHIN_SECONDS = 5.0
_PAUSE_SECONDS = 0.05
_TRIES = 20


class ClaimUser(Protocol):
    """A pod that claims devices."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


class ClaimAllocation:
    """Allocates claims in one cluster. Only the process that binds pods uses it."""

    def __init__(self, client: AsyncClient, store: DeviceStore, layout: NamespaceLayout) -> None:
        self._client, self._store, self._layout = client, store, layout
        self._in_flight: set[Key] = set()
        """Devices of allocations that are being written."""
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """Of claims that are being allocated."""
        self._devices: tuple[object, Devices] = (None, Devices())

    async def missing(self, order: PodOrder) -> str:
        """What a new pod would wait for forever, because it does not exist; empty if there is nothing."""
        if not order.settings.resource_claims:
            return ""
        await asyncio.to_thread(self._store.follow)
        namespace = self._layout.namespace_of(order.key.tenant)
        for claim in order.settings.resource_claims:
            name = claim.resource_claim_name or claim.resource_claim_template_name
            kind = ObjectKind.RESOURCE_CLAIM if claim.resource_claim_name else ObjectKind.RESOURCE_CLAIM_TEMPLATE
            if self._store[kind].find(namespace, name) is None:
                return f"There is no {kind} “{name}” in the namespace {namespace}."
        return ""

    async def allocate(self, wanted: Sequence[ResourceClaim], node: str, pod: ClaimUser) -> None:
        """Allocate the claims of a created pod for this node, and reserve them for it. Raises StartDelayed,
        BackendError.
        """
        await asyncio.to_thread(self._store.follow)
        names = [await self._name(pod, claim) for claim in wanted]
        async with contextlib.AsyncExitStack() as stack:
            for name in sorted(set(names)):
                await stack.enter_async_context(self._locks.setdefault((pod.namespace, name), asyncio.Lock()))
            claims = [self._claim(pod.namespace, name) for name in dict.fromkeys(names)]
            chosen = self._choose(claims, node, await self._labels(node))
            held = [one.device.key for found in chosen.values() for one in found if not one.request.is_admin]
            self._in_flight.update(held)
            try:
                for claim in claims:
                    await self._write(claim, chosen.get(claim["metadata"]["name"]), pod)
            finally:
                self._in_flight.difference_update(held)

    async def _name(self, pod: ClaimUser, claim: ResourceClaim) -> str:
        """The name of a claim of the pod; one from a template appears soon after the pod."""
        if claim.resource_claim_name:
            return claim.resource_claim_name
        give_up_at = time.monotonic() + _MADE_WITHIN_SECONDS
        while (found := self._store.claim_for(pod.namespace, pod.uid, claim.name)) is None:
            if time.monotonic() > give_up_at:
                raise BackendError(f"The claim “{claim.name}” of the pod was not made from its template yet")
            await asyncio.sleep(_PAUSE_SECONDS)
        return str(found["metadata"]["name"])

    def _claim(self, namespace: str, name: str) -> Json:
        found = self._store[ObjectKind.RESOURCE_CLAIM].find(namespace, name)
        if found is None or "deletionTimestamp" in found["metadata"]:
            raise BackendError(f"The claim “{name}” is being deleted")
        return found

    async def _labels(self, node: str) -> Mapping[str, str]:
        """The labels of a node, if devices are assigned to nodes by label."""
        if not any(_names_labels(device) for device in self._known().devices):
            return {}
        return await labels_of(self._client, node)

    def _choose(
        self, claims: Sequence[Json], node: str, labels: Mapping[str, str]
    ) -> dict[str, tuple[AllocatedDevice, ...]]:
        """Devices for the claims that have none, by name. Raises StartDelayed."""
        known = self._known()
        wanted = {}
        for claim in claims:
            meta = claim["metadata"]
            parsed = known.claims[f"{meta['namespace']}/{meta['name']}"]
            if parsed.allocated is None:
                wanted[meta["name"]] = parsed
            elif parsed.node_terms is not None and not any(one.matches(node, labels) for one in parsed.node_terms):
                raise StartDelayed(f"The devices of the claim “{meta['name']}” cannot be used on the node {node}.")
        if not wanted:
            return {}
        reachable = [device for device in known.devices if _is_reachable(device, node, labels)]
        in_use = self._in_flight | {key for claim in known.claims.values() for key in claim.allocated or ()}
        try:
            return DeviceAllocator(reachable, in_use, known.free_counters(in_use)).find(wanted)
        except (DevicesUnavailable, SelectorError) as error:
            names = " and ".join(f"“{name}”" for name in wanted)
            raise StartDelayed(f"The node {node} has no free device for the claim {names}.") from error

    def _known(self) -> Devices:
        basis = self._store.changes(device_objects.LISTS)
        if basis != self._devices[0]:
            objects = {
                field: [one.body for one in self._store[kind].all()] for kind, field in device_objects.LISTS.items()
            }
            self._devices = basis, device_objects.devices(objects)
        return self._devices[1]

    async def _write(self, claim: Json, devices: Sequence[AllocatedDevice] | None, pod: ClaimUser) -> None:
        """Write the allocation and the reservation; again after another change of the claim. Raises BackendError."""
        meta = claim["metadata"]
        path = f"{self._store.path}/namespaces/{meta['namespace']}/resourceclaims/{meta['name']}"
        for _ in range(_TRIES):
            status = claim.get("status") or {}
            if devices is not None and status.get("allocation"):
                raise BackendError(f"The claim “{meta['name']}” was allocated elsewhere in the meantime")
            users = status.get("reservedFor") or []
            if any(one["uid"] == pod.uid for one in users):
                return
            if len(users) >= MAX_USERS:
                raise StartDelayed(f"{MAX_USERS} pods use the claim “{meta['name']}”, which is the limit.")
            try:
                await self._write_once(path, claim, devices, [*users, _user(pod)])
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)  # the watch brings the newer version
                claim = self._claim(meta["namespace"], meta["name"])
            else:
                return
        raise BackendError(f"The claim “{meta['name']}” changes all the time")

    async def _write_once(
        self, path: str, claim: Json, devices: Sequence[AllocatedDevice] | None, users: Sequence[Json]
    ) -> None:
        finalizers = claim["metadata"].get("finalizers") or []
        if devices is not None and FINALIZER not in finalizers:
            meta = {"resourceVersion": claim["metadata"]["resourceVersion"], "finalizers": [*finalizers, FINALIZER]}
            claim = await self._client.patch(path, {"metadata": meta})
        status: Json = {"reservedFor": list(users)}
        if devices is not None:
            status["allocation"] = self._allocation(claim, devices)
        body = {"metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]}, "status": status}
        self._store[ObjectKind.RESOURCE_CLAIM].put(await self._client.patch(f"{path}/status", body))

    def _allocation(self, claim: Json, devices: Sequence[AllocatedDevice]) -> Json:
        met = {one.request.name for one in devices}
        config = list(self._configurations(claim, met))
        allocation: Json = {"devices": {"results": [*map(_result, devices)], "config": config}}
        if selector := _node_selector([one.device for one in devices]):
            allocation["nodeSelector"] = selector
        return allocation

    def _configurations(self, claim: Json, met: Collection[str]) -> Iterator[Json]:
        """What drivers are told about the devices: by their classes, then by the claim. `met`: the requests and
        alternatives that got devices.
        """
        wanted = claim["spec"].get("devices") or {}
        for name, exactly in _each_alternative(wanted.get("requests") or ()):
            of_class = self._store[ObjectKind.DEVICE_CLASS].find("", exactly.get("deviceClassName", ""))
            for one in ((of_class or {}).get("spec") or {}).get("config") or ():
                if name in met:
                    yield {**one, "source": "FromClass", "requests": [name]}
        concerned = {*met, *(name.partition("/")[0] for name in met)}
        for one in wanted.get("config") or ():
            if not one.get("requests") or not concerned.isdisjoint(one["requests"]):
                yield {**one, "source": "FromClaim"}


def _each_alternative(requests: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """Each request and each alternative by its name in allocations."""
    for request in requests:
        for one in request.get("firstAvailable") or ():
            yield f"{request['name']}/{one['name']}", one
        if not request.get("firstAvailable"):
            yield request["name"], request.get("exactly") or request


def _result(one: AllocatedDevice) -> Json:
    """A device in the status of a claim. With its tolerations, Kubernetes leaves the pod on a device with taints."""
    device, request = one.device, one.request
    found: Json = {"request": request.name, "driver": device.driver, "pool": device.pool, "device": device.name}
    if request.is_admin:
        found["adminAccess"] = True
    if request.tolerations:
        found["tolerations"] = list(request.tolerations)
    return found


def _names_labels(device: Device) -> bool:
    return any(term.expressions for term in device.node_terms or ())


def _is_reachable(device: Device, node: str, labels: Mapping[str, str]) -> bool:
    return device.node_terms is None or any(term.matches(node, labels) for term in device.node_terms)


def _user(pod: ClaimUser) -> Json:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _node_selector(devices: Iterable[Device]) -> Json | None:
    """The nodes that can use all of these devices; None: all nodes. One device of a node confines them to it."""
    terms = [device.node_terms[0] for device in devices if device.node_terms]
    local = next((term for term in terms if term.node_name), None)
    chosen = [local] if local else terms
    fields = dict.fromkeys(one for term in chosen for one in term.fields)
    expressions = dict.fromkeys(one for term in chosen for one in term.expressions)
    term = {"matchFields": _written(tuple(fields)), "matchExpressions": _written(tuple(expressions))}
    found = {name: requirements for name, requirements in term.items() if requirements}
    return {"nodeSelectorTerms": [found]} if found else None


def _written(requirements: Selector) -> list[Json]:
    return [
        {"key": one.key, "operator": one.operator, **({"values": list(one.values)} if one.values else {})}
        for one in requirements
    ]
