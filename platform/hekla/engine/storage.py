"""Persistent volumes, the claims on them and the classes they are made from, as far as they decide about nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hekla.engine.conditions import NodeTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class Claim:
    """A pod's claim. `volume`: the one it is bound to, empty while it is not bound. `size` in bytes."""

    storage_class: str = ""
    volume: str = ""
    size: float = 0.0
    access_modes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Volume:
    """`claim`: namespace/name of the one it is kept for. `node_terms`: from where it can be reached; None: anywhere."""

    name: str
    storage_class: str = ""
    size: float = 0.0
    access_modes: frozenset[str] = frozenset()
    claim: str = ""
    node_terms: tuple[NodeTerm, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """`waits`: binds when a pod has its node (WaitForFirstConsumer). `topologies`: where it can make volumes."""

    provisioner: str = NO_PROVISIONER
    waits: bool = False
    topologies: tuple[NodeTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """Claims by namespace/name, classes by name."""

    claims: Mapping[str, Claim] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
