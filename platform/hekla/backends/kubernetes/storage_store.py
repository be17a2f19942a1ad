"""Volumes of a Kubernetes cluster and claims to them, storage classes, and what nodes attach.

Claims are reported under the tenant that may use them. A claim that is created for a job is reported under the names of
the job and its volume (`cluster_objects.claim_name`), so the engine knows it before it exists.
"""

from collections.abc import Mapping
from typing import Any

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.cluster_store import ClusterStore
from hekla.backends.kubernetes.layout import Scopes, namespace_path
from hekla.backends.kubernetes.object_store import StoredObject
from hekla.backends.kubernetes.resource_paths import CLAIMS
from hekla.domain.cluster_objects import ObjectFacts, ObjectKind, claim_name, external_scope, foreign_name
from hekla.engine import storage_objects

_CORE, _STORAGE = "/api/v1", "/apis/storage.k8s.io/v1"
VOLUMES = f"{_CORE}/persistentvolumes"
_BOUND = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim that is bound."""
_OF_CLAIM = ("storageClassName", "accessModes", "resources", "selector", "volumeMode", "volumeName")
_OF_VOLUME = ("storageClassName", "accessModes", "capacity", "nodeAffinity", "volumeMode")


class StorageStore(ClusterStore):
    """The volumes of one cluster, and claims to them."""

    def places(self) -> Mapping[ObjectKind, str]:
        """Claims only where our pods are, and external ones."""
        is_wide = self.layout.per_tenant or self.external_scopes
        of_pods = _CORE if is_wide else namespace_path(self.layout.base)
        return {
            ObjectKind.VOLUME_CLAIM: f"{of_pods}/{CLAIMS}",
            ObjectKind.VOLUME: VOLUMES,
            ObjectKind.STORAGE_CLASS: f"{_STORAGE}/storageclasses",
            ObjectKind.CSI_NODE: f"{_STORAGE}/csinodes",
            ObjectKind.VOLUME_ATTACHMENT: f"{_STORAGE}/volumeattachments",
            ObjectKind.CSI_DRIVER: f"{_STORAGE}/csidrivers",
            ObjectKind.STORAGE_CAPACITY: f"{_STORAGE}/csistoragecapacities",
        }

    def scope(self, stored: StoredObject, scopes: Scopes) -> str:
        """That of the claim; for a volume, of the claim that it is bound to."""
        claim = stored.body.get("spec", {}).get("claimRef") or {}
        return scopes.get(stored.name[0] or claim.get("namespace", ""), "-")

    def facts(self, kind: ObjectKind, stored: StoredObject, scopes: Scopes) -> ObjectFacts | None:
        """What the engine reads of the object."""
        (namespace, _name), _version, body = stored
        if kind is ObjectKind.VOLUME_CLAIM:
            if namespace not in scopes:
                return None
            reported = _claim(body, scopes)
        elif kind is ObjectKind.VOLUME:
            reported = _volume(body, scopes)
        else:
            reported = _READ[kind](body)
        storage_objects.storage({storage_objects.LISTS[kind]: [reported]})
        meta = reported["metadata"]
        return ObjectFacts.of(kind, "/".join(filter(None, (meta.get("namespace"), meta["name"]))), reported)


def is_bound(claim: Json) -> bool:
    """Whether the cluster has bound a claim to its volume."""
    return bool(claim["spec"].get("volumeName")) and _BOUND in (claim["metadata"].get("annotations") or {})


def _key(namespace: str, name: str, scopes: Scopes) -> dict[str, str]:
    """The metadata of a claim of this name, as it is reported."""
    if namespace not in scopes:
        return {"namespace": "", "name": foreign_name(namespace, name)}
    scope = scopes[namespace]
    made_for = names.volume_of(name) if scope != external_scope(namespace) else None
    return {"namespace": scope, "name": claim_name("", *made_for).removeprefix("/") if made_for else name}


def _claim(body: Json, scopes: Scopes) -> dict[str, Any]:
    """A claim. One that names a volume and is not bound yet waits for the cluster: it is reported without its class, so
    that the engine takes it for unbound.
    """
    meta, spec = body["metadata"], body["spec"]
    wanted = {field: spec[field] for field in _OF_CLAIM if spec.get(field)}
    if spec.get("volumeName") and not is_bound(body):
        wanted = {field: value for field, value in wanted.items() if field not in ("volumeName", "storageClassName")}
    reported: dict[str, Any] = {"metadata": _key(meta["namespace"], meta["name"], scopes), "spec": wanted}
    if selected := (meta.get("annotations") or {}).get(storage_objects.SELECTED_NODE):
        reported["metadata"]["annotations"] = {storage_objects.SELECTED_NODE: selected}
    return _with_end(reported, meta)


def _volume(body: Json, scopes: Scopes) -> dict[str, Any]:
    meta, spec = body["metadata"], body["spec"]
    fields = {field: spec[field] for field in _OF_VOLUME if spec.get(field)}
    if claim := spec.get("claimRef"):
        fields["claimRef"] = _key(claim["namespace"], claim["name"], scopes)
    if driven := spec.get("csi"):
        fields["csi"] = {"driver": driven["driver"], "volumeHandle": driven["volumeHandle"]}
    reported = {
        "metadata": {"name": meta["name"], "labels": meta.get("labels") or {}},
        "spec": fields,
        "status": {"phase": (body.get("status") or {}).get("phase") or "Pending"},
    }
    return _with_end(reported, meta)


def _with_end(reported: dict[str, Any], meta: Json) -> dict[str, Any]:
    if "deletionTimestamp" in meta:
        reported["metadata"]["deletionTimestamp"] = meta["deletionTimestamp"]
    return reported


def _class(body: Json) -> dict[str, Any]:
    is_default = (body["metadata"].get("annotations") or {}).get(storage_objects.DEFAULT_CLASS)
    annotations = {"annotations": {storage_objects.DEFAULT_CLASS: is_default}} if is_default else {}
    fields = ("provisioner", "volumeBindingMode", "allowedTopologies")
    return {
        "metadata": {"name": body["metadata"]["name"], **annotations},
        **{field: body[field] for field in fields if body.get(field)},
    }


def _csi_node(body: Json) -> dict[str, Any]:
    drivers = [
        {"name": one["name"], "allocatable": {"count": one["allocatable"]["count"]}}
        for one in body["spec"].get("drivers") or ()
        if (one.get("allocatable") or {}).get("count") is not None
    ]
    return {"metadata": {"name": body["metadata"]["name"]}, "spec": {"drivers": drivers}}


def _attachment(body: Json) -> dict[str, Any]:
    spec = body["spec"]
    source = {"persistentVolumeName": (spec.get("source") or {}).get("persistentVolumeName") or ""}
    return {"metadata": {"name": body["metadata"]["name"]}, "spec": {"nodeName": spec["nodeName"], "source": source}}


def _driver(body: Json) -> dict[str, Any]:
    limits = bool((body.get("spec") or {}).get("storageCapacity"))
    return {"metadata": {"name": body["metadata"]["name"]}, "spec": {"storageCapacity": limits}}


def _capacity(body: Json) -> dict[str, Any]:
    """Its namespace is the one of the driver, which says nothing about who may use it, so it is part of the name."""
    meta = body["metadata"]
    fields = ("storageClassName", "nodeTopology", "capacity", "maximumVolumeSize")
    return {
        "metadata": {"name": f"{meta['namespace']}/{meta['name']}"},
        **{field: body[field] for field in fields if body.get(field) is not None},
    }


_READ = {
    ObjectKind.STORAGE_CLASS: _class,
    ObjectKind.CSI_NODE: _csi_node,
    ObjectKind.VOLUME_ATTACHMENT: _attachment,
    ObjectKind.CSI_DRIVER: _driver,
    ObjectKind.STORAGE_CAPACITY: _capacity,
}
