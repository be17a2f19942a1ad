"""Reads persistent volumes, claims and storage classes from Kubernetes objects."""

from collections.abc import Mapping
from typing import Any

from hekla.domain.resources import parse_quantity
from hekla.engine.constraints import NodeSelectorTerm, Requirement
from hekla.engine.pod_objects import node_terms
from hekla.engine.storage import NO_PROVISIONER, PersistentVolume, PersistentVolumeClaim, Storage, StorageClass

Object = Mapping[str, Any]


def storage(cluster: Object) -> Storage:
    """The storage of a cluster."""
    claims = cluster.get("persistentVolumeClaims") or ()
    return Storage(
        claims={f"{claim['metadata']['namespace']}/{claim['metadata']['name']}": _claim(claim) for claim in claims},
        volumes=tuple(_volume(volume) for volume in cluster.get("persistentVolumes") or ()),
        classes={one["metadata"]["name"]: _class(one) for one in cluster.get("storageClasses") or ()},
    )


def _claim(claim: Object) -> PersistentVolumeClaim:
    spec = claim.get("spec") or {}
    requests = (spec.get("resources") or {}).get("requests") or {}
    return PersistentVolumeClaim(
        storage_class=spec.get("storageClassName") or "",
        volume=spec.get("volumeName") or "",
        size=_bytes(requests.get("storage", 0)),
        access_modes=frozenset(spec.get("accessModes") or ()),
    )


def _volume(volume: Object) -> PersistentVolume:
    spec, metadata = volume.get("spec") or {}, volume["metadata"]
    claim = spec.get("claimRef")
    return PersistentVolume(
        name=metadata["name"],
        storage_class=spec.get("storageClassName") or "",
        size=_bytes((spec.get("capacity") or {}).get("storage", 0)),
        access_modes=frozenset(spec.get("accessModes") or ()),
        claim=f"{claim['namespace']}/{claim['name']}" if claim else "",
        node_terms=node_terms((spec.get("nodeAffinity") or {}).get("required")),
        labels=metadata.get("labels") or {},
    )


def _class(one: Object) -> StorageClass:
    topologies = one.get("allowedTopologies")
    return StorageClass(
        provisioner=one.get("provisioner") or NO_PROVISIONER,
        waits_for_consumer=one.get("volumeBindingMode") == "WaitForFirstConsumer",
        topologies=tuple(_topology(term) for term in topologies) if topologies else None,
    )


def _topology(term: Object) -> NodeSelectorTerm:
    labels = term.get("matchLabelExpressions") or ()
    return NodeSelectorTerm(tuple(Requirement(label["key"], "In", tuple(label["values"])) for label in labels))


def _bytes(quantity: str | int | float) -> float:
    return parse_quantity("memory", quantity)
