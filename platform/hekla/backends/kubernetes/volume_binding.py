"""Bind the volume claims of a pod before the pod is bound, as a scheduler must.

A claim whose storage class waits for its first consumer is bound to an existing volume that the node reaches, or the
node is written to the claim, and the class's provisioner makes a volume there. The cluster's own controllers do the
rest. Volumes and claims are written only in the version that was read, so no decision of others is overwritten.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from hekla.backends.base import BackendError, NodeUnsuitable, StartDelayed, VolumePending
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.layout import namespace_path
from hekla.backends.kubernetes.node_labels import labels_of
from hekla.backends.kubernetes.resource_paths import CLAIMS
from hekla.backends.kubernetes.storage_store import VOLUMES, StorageStore, is_bound
from hekla.domain.cluster_objects import ObjectKind
from hekla.engine import storage_objects
from hekla.engine.constraints import NodeSelectorTerm
from hekla.engine.storage import PersistentVolume, PersistentVolumeClaim, Storage, StorageClass

_LISTED_WITHIN_SECONDS = 5.0
_BOUND_WITHIN_SECONDS = 1.0
"""Volumes that exist are bound so soon. A start that waits for longer is tried again after the next change."""
_PAUSE_SECONDS = 0.05
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""The annotation of a volume that nobody reserved for its claim in advance."""


class VolumeBinding:
    """Binds claims in one cluster. Only the process that binds pods uses it. Not `enabled`: it does nothing."""

    def __init__(self, client: AsyncClient, store: StorageStore, *, enabled: bool) -> None:
        self._client, self._store, self.enabled = client, store, enabled
        self._in_flight: set[str] = set()
        """Volumes whose claims are being written."""
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """Of claims that are being bound."""
        self._storage: tuple[object, Storage] = (None, Storage())

    async def bind(self, claims: Sequence[str], node: str, namespace: str) -> None:
        """Bind the claims of a created pod for its node. Raises StartDelayed, NodeUnsuitable, BackendError."""
        names = list(dict.fromkeys(claims)) if self.enabled else []
        if not names:
            return
        await asyncio.to_thread(self._store.follow)
        await self._await_listed(namespace, names)
        labels = await labels_of(self._client, node)
        async with contextlib.AsyncExitStack() as stack:
            for name in sorted(names):
                await stack.enter_async_context(self._locks.setdefault((namespace, name), asyncio.Lock()))
            known = self._known().claims
            has_written = False
            for name in sorted(names, key=lambda name: known[f"{namespace}/{name}"].size):
                has_written |= await self._bind_one(namespace, name, node, labels)
        await self._await_bound(namespace, names, _BOUND_WITHIN_SECONDS if has_written else 0.0)
        for name in names:
            self._check_reach(self._claim(namespace, name), node, labels)

    async def _await_listed(self, namespace: str, names: list[str]) -> None:
        """Wait for claims that were just created to be listed."""
        give_up_at = time.monotonic() + _LISTED_WITHIN_SECONDS
        for name in names:
            while (found := self._store[ObjectKind.VOLUME_CLAIM].find(namespace, name)) is None:
                if time.monotonic() > give_up_at:
                    raise StartDelayed(f"There is no claim “{name}” in the namespace {namespace}.")
                await asyncio.sleep(_PAUSE_SECONDS)
            if "deletionTimestamp" in found["metadata"]:
                raise StartDelayed(f"The claim “{name}” is being deleted.")

    async def _bind_one(self, namespace: str, name: str, node: str, labels: Mapping[str, str]) -> bool:
        """Choose a volume for the claim, or its node, if a pod must. Returns whether it was written."""
        body, known = self._claim(namespace, name), self._known()
        claim = known.claims[f"{namespace}/{name}"]
        storage_class = known.classes.get(claim.storage_class)
        is_pending = storage_class is not None and storage_class.waits_for_consumer and not claim.volume
        if storage_class is None or not is_pending or claim.selected_node:
            return False
        if (volume := self._choose(known, f"{namespace}/{name}", claim, node, labels)) is not None:
            return await self._bind_to(volume, body)
        if not _provisions_on(storage_class, node, labels):
            raise NodeUnsuitable(f"The node {node} has no free volume for the claim “{name}”.")
        change = {
            "resourceVersion": body["metadata"]["resourceVersion"],
            "annotations": {storage_objects.SELECTED_NODE: node},
        }
        path = f"{namespace_path(namespace)}/{CLAIMS}/{name}"
        self._store[ObjectKind.VOLUME_CLAIM].put(await self._client.patch(path, {"metadata": change}))
        return True

    def _choose(
        self, known: Storage, key: str, claim: PersistentVolumeClaim, node: str, labels: Mapping[str, str]
    ) -> PersistentVolume | None:
        """The volume that is reserved for the claim, or the smallest free one that fits. Raises NodeUnsuitable."""
        own = next((volume for volume in known.volumes if volume.claim == key), None)
        if own is not None:
            if not _reaches(own.node_terms, node, labels):
                raise NodeUnsuitable(f"The volume of the claim “{key.partition('/')[2]}” is not reachable from {node}.")
            return own
        free = (
            volume
            for volume in known.volumes
            if volume.is_available and not volume.claim and volume.name not in self._in_flight
        )
        fitting = (one for one in free if one.fits(claim) and _reaches(one.node_terms, node, labels))
        return min(fitting, key=lambda volume: volume.rank, default=None)

    async def _bind_to(self, volume: PersistentVolume, claim: Json) -> bool:
        """Reserve the volume for the claim; the cluster's controllers bind them then."""
        body = self._store[ObjectKind.VOLUME].find("", volume.name)
        if body is None:
            raise BackendError(f"The volume {volume.name} was deleted")
        meta = claim["metadata"]
        reference = body["spec"].get("claimRef") or {}
        if reference.get("uid") == meta["uid"]:
            return False
        change: Json = {"resourceVersion": body["metadata"]["resourceVersion"]}
        if not reference:
            change["annotations"] = {_BY_CONTROLLER: "yes"}
        named = {field: meta[field] for field in ("namespace", "name", "uid", "resourceVersion")}
        claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}
        self._in_flight.add(volume.name)
        try:
            patch = {"metadata": change, "spec": {"claimRef": claim_ref}}
            self._store[ObjectKind.VOLUME].put(await self._client.patch(f"{VOLUMES}/{volume.name}", patch))
        finally:
            self._in_flight.discard(volume.name)
        return True

    async def _await_bound(self, namespace: str, names: list[str], seconds: float) -> None:
        give_up_at = time.monotonic() + seconds
        for name in names:
            while not is_bound(self._claim(namespace, name)):
                if time.monotonic() > give_up_at:
                    raise VolumePending(f"The claim “{name}” has no volume yet.")
                await asyncio.sleep(_PAUSE_SECONDS)

    def _check_reach(self, claim: Json, node: str, labels: Mapping[str, str]) -> None:
        name = claim["spec"]["volumeName"]
        volume = next((one for one in self._known().volumes if one.name == name), None)
        if volume is None:
            raise StartDelayed(f"The volume {name} of the claim “{claim['metadata']['name']}” does not exist.")
        if not _reaches(volume.node_terms, node, labels):
            of_claim = f"The volume of the claim “{claim['metadata']['name']}”"
            raise NodeUnsuitable(f"{of_claim} is not reachable from {node}.")

    def _claim(self, namespace: str, name: str) -> Json:
        found = self._store[ObjectKind.VOLUME_CLAIM].find(namespace, name)
        if found is None:
            raise StartDelayed(f"There is no claim “{name}” in the namespace {namespace}.")
        return found

    def _known(self) -> Storage:
        """The volumes, claims and classes, with the names that the cluster gives them."""
        kinds = (ObjectKind.VOLUME_CLAIM, ObjectKind.VOLUME, ObjectKind.STORAGE_CLASS)
        basis = self._store.changes(kinds)
        if basis != self._storage[0]:
            bodies = {storage_objects.LISTS[kind]: [one.body for one in self._store[kind].all()] for kind in kinds}
            self._storage = basis, storage_objects.storage(bodies)
        return self._storage[1]


def _provisions_on(storage_class: StorageClass, node: str, labels: Mapping[str, str]) -> bool:
    return storage_class.provisions and _reaches(storage_class.topologies, node, labels)


def _reaches(terms: tuple[NodeSelectorTerm, ...] | None, node: str, labels: Mapping[str, str]) -> bool:
    return terms is None or any(term.matches(node, labels) for term in terms)
