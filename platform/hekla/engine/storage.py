"""Persistent volumes, claims and storage classes, as far as they constrain nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hekla.engine.constraints import NodeSelectorTerm, Selector, matches

NO_PROVISIONER = "kubernetes.io/no-provisioner"
FILE_SYSTEM = "Filesystem"
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A persistent volume claim. `volume`: the bound one; empty if unbound. `size` in bytes.

    `selector`: of the labels of its volume; None: an invalid one, which matches nothing. `mode`: of its volume.
    `selected_node`: where a volume is being provisioned for it; empty if nowhere yet. `is_ending`: it is being deleted.
    """

    storage_class: str = ""
    volume: str = ""
    size: float = 0.0
    access_modes: frozenset[str] = frozenset()
    selector: Selector | None = ()
    mode: str = FILE_SYSTEM
    selected_node: str = ""
    is_ending: bool = False

    @property
    def can_be_shared(self) -> bool:
        """Whether pods on several nodes can use it at once."""
        return not _SHARED.isdisjoint(self.access_modes)


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A persistent volume. `claim`: namespace/name it is bound to. `node_terms`: nodes that reach it; None: all.

    `is_available`: whether a claim can be bound to it, if none is. `driver`, `handle`: the CSI driver that attaches it,
    and the name that the driver gives it; empty without one.
    """

    name: str
    storage_class: str = ""
    size: float = 0.0
    access_modes: frozenset[str] = frozenset()
    claim: str = ""
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    mode: str = FILE_SYSTEM
    is_available: bool = True
    driver: str = ""
    handle: str = ""

    def fits(self, claim: PersistentVolumeClaim) -> bool:
        """Whether it is what the claim asks for."""
        is_alike = (claim.storage_class, claim.mode) == (self.storage_class, self.mode)
        is_enough = claim.size <= self.size and claim.access_modes <= self.access_modes
        return is_alike and is_enough and claim.selector is not None and matches(claim.selector, self.labels)

    @property
    def rank(self) -> tuple[float, str]:
        """Of the volumes that fit a claim, the one with the smallest rank is bound."""
        return self.size, self.name


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """The room for new volumes of a class in a part of the cluster, as its CSI driver reports it.

    `node_selector`: of the labels of the nodes that reach it; None: no node does. `largest`: bytes of the largest
    volume that it can make there; -1: unknown, so none.
    """

    node_selector: Selector | None
    largest: float


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class. `waits_for_consumer`: WaitForFirstConsumer. `topologies`: where it provisions; None: all.

    `is_default`: of claims that name no class when they are created. `room`: where its driver has room for new volumes;
    None: the driver does not report that, or the class does not ask the scheduler.
    """

    provisioner: str = NO_PROVISIONER
    waits_for_consumer: bool = False
    topologies: tuple[NodeSelectorTerm, ...] | None = None
    is_default: bool = False
    room: tuple[StorageCapacity, ...] | None = None

    @property
    def provisions(self) -> bool:
        """Whether it provisions volumes."""
        return self.provisioner not in ("", NO_PROVISIONER)


Attachment = tuple[str, str]
"""A CSI driver, and the name that it gives to a volume."""


@dataclass(frozen=True, slots=True)
class Storage:
    """All volumes, claims by namespace/name, and classes by name.

    `attach_limits`: by node and CSI driver, how many volumes the driver can attach there. `attached`: by node, the
    volumes that are attached to it, also for pods that the engine does not know.
    """

    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: tuple[PersistentVolume, ...] = ()
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    attach_limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    attached: Mapping[str, frozenset[Attachment]] = field(default_factory=dict)
