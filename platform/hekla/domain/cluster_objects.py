"""Objects of a cluster that the engine reads as they are: devices and volumes, claims to them, disruption budgets, and
runtime classes.

A cluster stores each of them, cut down to what the engine reads, in the form of a Kubernetes object. The namespace in
its metadata is the short name of the tenant to whose pods it belongs; empty if it belongs to all tenants. For external
pods it is `external_scope`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MAX_NAME = 600
MAX_BODY_BYTES = 256 * 1024
"""A ResourceSlice has at most 128 devices, each with at most 32 attributes and capacities."""
MAX_OBJECTS = 20_000
"""Of one kind."""


class ObjectKind(StrEnum):
    """The kind of an object."""

    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_CLAIM_TEMPLATE = "ResourceClaimTemplate"
    VOLUME_CLAIM = "PersistentVolumeClaim"
    VOLUME = "PersistentVolume"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    CSI_DRIVER = "CSIDriver"
    STORAGE_CAPACITY = "CSIStorageCapacity"
    DISRUPTION_BUDGET = "PodDisruptionBudget"
    RUNTIME_CLASS = "RuntimeClass"


DEVICE_KINDS = (
    ObjectKind.RESOURCE_SLICE,
    ObjectKind.DEVICE_CLASS,
    ObjectKind.RESOURCE_CLAIM,
    ObjectKind.RESOURCE_CLAIM_TEMPLATE,
)
STORAGE_KINDS = (
    ObjectKind.VOLUME_CLAIM,
    ObjectKind.VOLUME,
    ObjectKind.STORAGE_CLASS,
    ObjectKind.CSI_NODE,
    ObjectKind.VOLUME_ATTACHMENT,
    ObjectKind.CSI_DRIVER,
    ObjectKind.STORAGE_CAPACITY,
)
BUDGET_KINDS = (ObjectKind.DISRUPTION_BUDGET,)
RUNTIME_KINDS = (ObjectKind.RUNTIME_CLASS,)


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """An object as the cluster reports it. `name`: unique among those of its kind. `digest`: changes with the body."""

    kind: ObjectKind
    name: str
    body: Mapping[str, Any] = field(compare=False, repr=False)
    digest: str

    @classmethod
    def of(cls, kind: ObjectKind, name: str, body: Mapping[str, Any]) -> "ObjectFacts":
        """The facts with this body. Raises ValueError if they cannot be stored."""
        text = json.dumps(body, sort_keys=True)
        if len(text) > MAX_BODY_BYTES or len(name) > MAX_NAME or "\\u0000" in text:
            raise ValueError("it is too large, or contains a zero byte")
        return cls(kind, name, body, hashlib.sha256(text.encode()).hexdigest()[:32])


def external_scope(namespace: str) -> str:
    """The namespace, in the metadata, of objects for the external pods of a namespace of the cluster."""
    return f"external:{namespace}"


def template_name(namespace: str, name: str) -> str:
    """The name under which a claim template is among the claims: no pod can name it."""
    return f"{namespace}/{name}/"


def foreign_name(namespace: str, name: str) -> str:
    """The name of a claim in a namespace of others: no pod can have it, but its devices are in use."""
    return f"//{namespace}/{name}"


def claim_name(namespace: str, owner: str, claim: str) -> str:
    """The name of a claim that is made for its owner, under `namespace`, also before the claim exists.

    The owner is the pod for a claim from a template, and the job for the claim of one of its volumes.
    """
    return f"{namespace}/{owner}/{claim}"
