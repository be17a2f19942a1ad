"""Devices of a Kubernetes cluster and claims to them: the objects of `resource.k8s.io`, followed once a job needs them.

Claims are reported under the tenant that may use them. Claims of others count too, because their devices are in use.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from hekla.backends.kubernetes.api import NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.cluster_store import ClusterStore
from hekla.backends.kubernetes.layout import NamespaceLayout, Scopes
from hekla.backends.kubernetes.object_store import StoredObject
from hekla.domain.cluster_objects import ObjectFacts, ObjectKind, claim_name, foreign_name, template_name
from hekla.engine import device_objects

GROUP = "resource.k8s.io"
_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Those that Hekla reads, the best first."""
_MADE_FOR = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made from a template: the name that the pod gives it."""


class DeviceStore(ClusterStore):
    """The devices of one cluster, and claims to them."""

    def __init__(
        self, api: Api, layout: NamespaceLayout, wake: Callable[[], None], external: Collection[str] = ()
    ) -> None:
        super().__init__(api, layout, wake, external)
        self.path = ""
        """The path of the API's version; empty before it is known."""

    def places(self) -> Mapping[ObjectKind, str]:
        """In the best version that the server has."""
        served = {one["version"] for one in self.api.get(f"/apis/{GROUP}")["versions"]}
        version = next((one for one in _VERSIONS if one in served), "")
        if not version:
            raise ApiError(NOT_FOUND, "", f"the server has none of {', '.join(_VERSIONS)} of {GROUP}")
        self.path = f"/apis/{GROUP}/{version}"
        of_pods = "" if self.layout.per_tenant else f"/namespaces/{self.layout.base}"
        places = {
            ObjectKind.RESOURCE_SLICE: "/resourceslices",
            ObjectKind.DEVICE_CLASS: "/deviceclasses",
            ObjectKind.RESOURCE_CLAIM: "/resourceclaims",
            ObjectKind.RESOURCE_CLAIM_TEMPLATE: f"{of_pods}/resourceclaimtemplates",
        }
        return {kind: self.path + place for kind, place in places.items()}

    def facts(self, kind: ObjectKind, stored: StoredObject, scopes: Scopes) -> ObjectFacts | None:
        """Claims of others only if they are allocated."""
        (namespace, name), _version, body = stored
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

    def claim_for(self, namespace: str, pod_uid: str, name: str) -> Json | None:
        """The claim that was made from a template for this pod, which calls it `name`."""
        of_pod = (one.body for one in self[ObjectKind.RESOURCE_CLAIM].all() if one.name[0] == namespace)
        return next((body for body in of_pod if _maker(body)[1:] == (pod_uid, name)), None)


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
