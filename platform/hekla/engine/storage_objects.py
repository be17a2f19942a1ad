"""Reads persistent volumes, claims, storage classes and what nodes attach from Kubernetes objects."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hekla.domain.cluster_objects import ObjectKind
from hekla.domain.resources import parse_quantity
from hekla.engine.constraints import NodeSelectorTerm, Requirement
from hekla.engine.pod_objects import label_selector, node_terms
from hekla.engine.storage import (
    FILE_SYSTEM,
    NO_PROVISIONER,
    Attachment,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageCapacity,
    StorageClass,
)

Object = Mapping[str, Any]
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
LISTS: Mapping[ObjectKind, str] = {
    ObjectKind.VOLUME_CLAIM: "persistentVolumeClaims",
    ObjectKind.VOLUME: "persistentVolumes",
    ObjectKind.STORAGE_CLASS: "storageClasses",
    ObjectKind.CSI_NODE: "csiNodes",
    ObjectKind.VOLUME_ATTACHMENT: "volumeAttachments",
    ObjectKind.CSI_DRIVER: "csiDrivers",
    ObjectKind.STORAGE_CAPACITY: "csiStorageCapacities",
}
"""The lists that `storage` reads."""
_AVAILABLE = "Available"


def storage(cluster: Object) -> Storage:
    """The storage of a cluster."""
    claims = cluster.get("persistentVolumeClaims") or ()
    volumes = tuple(_volume(volume) for volume in cluster.get("persistentVolumes") or ())
    return Storage(
        claims={f"{claim['metadata']['namespace']}/{claim['metadata']['name']}": _claim(claim) for claim in claims},
        volumes=volumes,
        classes=_classes(cluster),
        attach_limits={
            one["metadata"]["name"]: found for one in cluster.get("csiNodes") or () if (found := _limits(one))
        },
        attached=_attached(cluster.get("volumeAttachments") or (), {volume.name: volume for volume in volumes}),
    )


def _limits(node: Object) -> Mapping[str, int]:
    drivers = (node.get("spec") or {}).get("drivers") or ()
    limits = ((one["name"], (one.get("allocatable") or {}).get("count")) for one in drivers)
    return {driver: int(count) for driver, count in limits if count is not None}


def _attached(
    attachments: Iterable[Object], volumes: Mapping[str, PersistentVolume]
) -> Mapping[str, frozenset[Attachment]]:
    found: dict[str, set[Attachment]] = defaultdict(set)
    for spec in (one["spec"] for one in attachments):
        volume = volumes.get((spec.get("source") or {}).get("persistentVolumeName") or "")
        if volume is not None and volume.driver:
            found[spec["nodeName"]].add((volume.driver, volume.handle))
    return {node: frozenset(found[node]) for node in sorted(found)}


def _claim(claim: Object) -> PersistentVolumeClaim:
    spec, metadata = claim.get("spec") or {}, claim["metadata"]
    requests = (spec.get("resources") or {}).get("requests") or {}
    return PersistentVolumeClaim(
        storage_class=spec.get("storageClassName") or "",
        volume=spec.get("volumeName") or "",
        size=_bytes(requests.get("storage", 0)),
        access_modes=frozenset(spec.get("accessModes") or ()),
        selector=label_selector(spec.get("selector") or {}),
        mode=spec.get("volumeMode") or FILE_SYSTEM,
        selected_node=(metadata.get("annotations") or {}).get(SELECTED_NODE, ""),
        is_ending="deletionTimestamp" in metadata,
    )


def _volume(volume: Object) -> PersistentVolume:
    spec, metadata = volume.get("spec") or {}, volume["metadata"]
    claim, driven = spec.get("claimRef"), spec.get("csi") or {}
    phase = (volume.get("status") or {}).get("phase") or _AVAILABLE
    return PersistentVolume(
        name=metadata["name"],
        storage_class=spec.get("storageClassName") or "",
        size=_bytes((spec.get("capacity") or {}).get("storage", 0)),
        access_modes=frozenset(spec.get("accessModes") or ()),
        claim=f"{claim['namespace']}/{claim['name']}" if claim else "",
        node_terms=node_terms((spec.get("nodeAffinity") or {}).get("required")),
        labels=metadata.get("labels") or {},
        mode=spec.get("volumeMode") or FILE_SYSTEM,
        is_available=phase == _AVAILABLE and "deletionTimestamp" not in metadata,
        driver=driven.get("driver", ""),
        handle=driven.get("volumeHandle", ""),
    )


def _classes(cluster: Object) -> Mapping[str, StorageClass]:
    """The classes. Those that wait for a consumer get the room that their drivers report."""
    reporting = {
        one["metadata"]["name"]
        for one in cluster.get("csiDrivers") or ()
        if (one.get("spec") or {}).get("storageCapacity")
    }
    room: dict[str, list[StorageCapacity]] = defaultdict(list)
    for one in cluster.get("csiStorageCapacities") or ():
        room[one["storageClassName"]].append(_capacity(one))
    classes = {one["metadata"]["name"]: _class(one) for one in cluster.get("storageClasses") or ()}
    return {
        name: replace(one, room=tuple(room[name])) if one.waits_for_consumer and one.provisioner in reporting else one
        for name, one in classes.items()
    }


def _capacity(one: Object) -> StorageCapacity:
    largest = one.get("maximumVolumeSize") or one.get("capacity")
    return StorageCapacity(label_selector(one.get("nodeTopology")), _bytes(largest) if largest else -1.0)


def _class(one: Object) -> StorageClass:
    topologies = one.get("allowedTopologies")
    return StorageClass(
        provisioner=one.get("provisioner") or NO_PROVISIONER,
        waits_for_consumer=one.get("volumeBindingMode") == "WaitForFirstConsumer",
        topologies=tuple(_topology(term) for term in topologies) if topologies else None,
        is_default=(one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true",
    )


def _topology(term: Object) -> NodeSelectorTerm:
    labels = term.get("matchLabelExpressions") or ()
    return NodeSelectorTerm(tuple(Requirement(label["key"], "In", tuple(label["values"])) for label in labels))


def _bytes(quantity: str | int | float) -> float:
    return parse_quantity("memory", quantity)
