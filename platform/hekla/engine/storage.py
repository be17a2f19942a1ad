"""Persistent volumes, claims and storage classes, as far as they constrain nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hekla.engine.constraints import NodeSelectorTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A persistent volume claim. `volume`: the bound one; empty if unbound. `size` in bytes."""

    storage_class: str = ""
    volume: str = ""
    size: float = 0.0
    access_modes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A persistent volume. `claim`: namespace/name it is bound to. `node_terms`: nodes that reach it; None: all."""

    name: str
    storage_class: str = ""
    size: float = 0.0
    access_modes: frozenset[str] = frozenset()
    claim: str = ""
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class. `waits_for_consumer`: WaitForFirstConsumer. `topologies`: where it provisions; None: all."""

    provisioner: str = NO_PROVISIONER
    waits_for_consumer: bool = False
    topologies: tuple[NodeSelectorTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """All volumes, claims by namespace/name, and classes by name."""

    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: tuple[PersistentVolume, ...] = ()
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
