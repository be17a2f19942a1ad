"""Devices of a Kubernetes cluster and claims to them: the objects of `resource.k8s.io`, followed once a job needs them.

Claims are reported under the tenant that may use them. Claims of others count too, because their devices are in use.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.layout import NamespaceLayout, Scopes
from hekla.backends.kubernetes.object_store import ObjectStore, StoredObject
from hekla.domain.cluster_objects import (
    MAX_OBJECTS,
    ObjectFacts,
    ObjectKind,
    claim_name,
    external_scope,
    foreign_name,
    template_name,
)
from hekla.engine import device_objects

log = logging.getLogger(__name__)
GROUP = "resource.k8s.io"
_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Those that Hekla reads, the best first."""
_ABSENCE_VALID_SECONDS = 60.0
_MADE_FOR = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made from a template: the name that the pod gives it."""


class DeviceStore:
    """The objects of one cluster. Implements `base.ClusterObjects`."""

    def __init__(
        self, api: Api, layout: NamespaceLayout, wake: Callable[[], None], external: Collection[str] = ()
    ) -> None:
        self._api, self._layout, self._wake = api, layout, wake
        self._external = {name: external_scope(name) for name in external}
        self._stores: dict[ObjectKind, ObjectStore] = {}
        self._absent_until = float("-inf")
        self._facts: dict[tuple[ObjectKind, str, str, int], ObjectFacts | None] = {}
        self._listed: tuple[object, Sequence[ObjectFacts]] = (None, ())
        self.path = ""
        """The path of the API's version; empty before it is known."""

    def list_objects(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:
        """From the watches; none in a cluster without such objects, or without the right to read them."""
        if not self._follow_if_possible():
            return ()
        scopes = self._layout.scopes(tenants) | self._external
        basis = [(kind, store, store.changes) for kind, store in self._stores.items()], scopes
        if basis != self._listed[0]:
            self._listed = basis, tuple(self._read_all(scopes))
        return self._listed[1]

    def follow(self) -> None:
        """List what is not listed yet, and follow its changes. Raises BackendError."""
        if not self._stores:
            self._stores = self._make_stores()
        for store in self._stores.values():
            store.follow()

    def __getitem__(self, kind: ObjectKind) -> ObjectStore:
        """The objects of one kind, once they are followed."""
        return self._stores[kind]

    def claim_for(self, namespace: str, pod_uid: str, name: str) -> Json | None:
        """The claim that was made from a template for this pod, which calls it `name`."""
        of_pod = (one.body for one in self._stores[ObjectKind.RESOURCE_CLAIM].all() if one.name[0] == namespace)
        return next((body for body in of_pod if _maker(body)[1:] == (pod_uid, name)), None)

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        return next((store.fault for store in self._stores.values() if store.fault), "")

    def close(self) -> None:
        """End the watches. The owner closes the connections."""
        for store in self._stores.values():
            store.close()

    def _follow_if_possible(self) -> bool:
        if time.monotonic() < self._absent_until:
            return False
        try:
            self.follow()
        except BackendError as error:
            log.info("devices and claims cannot be listed: %s", error)
            if isinstance(error, ApiError) and error.status in (NOT_FOUND, FORBIDDEN):
                self._absent_until = time.monotonic() + _ABSENCE_VALID_SECONDS
            return False
        return True

    def _make_stores(self) -> dict[ObjectKind, ObjectStore]:
        served = {one["version"] for one in self._api.get(f"/apis/{GROUP}")["versions"]}
        version = next((one for one in _VERSIONS if one in served), "")
        if not version:
            raise ApiError(NOT_FOUND, "", f"the server has none of {', '.join(_VERSIONS)} of {GROUP}")
        self.path = f"/apis/{GROUP}/{version}"
        of_pods = "" if self._layout.per_tenant else f"/namespaces/{self._layout.base}"
        places = {
            ObjectKind.RESOURCE_SLICE: "/resourceslices",
            ObjectKind.DEVICE_CLASS: "/deviceclasses",
            ObjectKind.RESOURCE_CLAIM: "/resourceclaims",
            ObjectKind.RESOURCE_CLAIM_TEMPLATE: f"{of_pods}/resourceclaimtemplates",
        }
        return {kind: ObjectStore(self._api, self.path + place, self._wake) for kind, place in places.items()}

    def _read_all(self, scopes: Scopes) -> Iterator[ObjectFacts]:
        known, self._facts = self._facts, {}
        for kind, store in self._stores.items():
            objects = store.all()
            if len(objects) > MAX_OBJECTS:
                log.warning("the cluster has %d objects of the kind %s; %d count", len(objects), kind, MAX_OBJECTS)
            for one in objects[:MAX_OBJECTS]:
                key = kind, scopes.get(one.name[0], "-"), "/".join(one.name), one.version
                self._facts[key] = found = known[key] if key in known else _facts(kind, one, scopes)
                if found is not None:
                    yield found


def _facts(kind: ObjectKind, stored: StoredObject, scopes: Scopes) -> ObjectFacts | None:
    """What is reported of an object; None if it is not valid, or does not matter."""
    (namespace, name), _version, body = stored
    try:
        if kind not in (ObjectKind.RESOURCE_CLAIM, ObjectKind.RESOURCE_CLAIM_TEMPLATE):
            reported: dict[str, Any] = {"metadata": {"name": name}, "spec": body["spec"]}
        elif namespace in scopes:
            reported = _claim(kind, body, scopes[namespace])
        elif (body.get("status") or {}).get("allocation"):
            reported = _claim(kind, body, "") | {"metadata": {"namespace": "", "name": foreign_name(namespace, name)}}
        else:
            return None
        if field := device_objects.LISTS.get(kind):
            device_objects.devices({field: [reported]})
        meta = reported["metadata"]
        return ObjectFacts.of(kind, "/".join(filter(None, (meta.get("namespace"), meta["name"]))), reported)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        log.warning("%s %s/%s is left out: %s", kind, namespace, name, error)
        return None


def _claim(kind: ObjectKind, body: Json, scope: str) -> dict[str, Any]:
    """A claim or a template, with what the engine reads of it. Claims made for a pod are named after it."""
    name = body["metadata"]["name"]
    spec = body["spec"]["spec"] if kind is ObjectKind.RESOURCE_CLAIM_TEMPLATE else body["spec"]
    wanted = {field: value for field, value in (spec.get("devices") or {}).items() if field != "config"}
    pod, _uid, called = _maker(body)
    key = claim_name(scope, pod, called) if pod else f"{scope}/{name}"
    if kind is ObjectKind.RESOURCE_CLAIM_TEMPLATE:
        key = template_name(scope, name)
    meta = {"namespace": scope, "name": key.removeprefix(f"{scope}/")}
    reported: dict[str, Any] = {"metadata": meta, "spec": {"devices": wanted}}
    if allocation := (body.get("status") or {}).get("allocation"):
        results = [
            {field: one[field] for field in ("request", "driver", "pool", "device")}
            for one in (allocation.get("devices") or {}).get("results") or ()
        ]
        of_devices = {"devices": {"results": results}}
        reach = {"nodeSelector": allocation["nodeSelector"]} if allocation.get("nodeSelector") else {}
        reported["status"] = {"allocation": of_devices | reach}
    return reported


def _maker(body: Json) -> tuple[str, str, str]:
    """The pod for which a claim was made, its uid, and what it calls the claim; empty texts if there is none."""
    meta = body["metadata"]
    called = (meta.get("annotations") or {}).get(_MADE_FOR, "")
    owners = [one for one in meta.get("ownerReferences") or () if one.get("kind") == "Pod"] if called else []
    return (owners[0]["name"], owners[0]["uid"], called) if owners else ("", "", "")
