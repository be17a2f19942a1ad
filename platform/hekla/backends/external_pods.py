"""The facets of a backend whose engine also places pods that others created, and shows them its queues.

External pods are named by their objects, since they have no `PodKey`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from hekla.backends.base import BackendError
from hekla.backends.delegated import QueueOrder
from hekla.domain.external_pods import ExternalPod, ExternalPodRules, PodGroup
from hekla.domain.phases import GangPhase


class EvictionRefused(BackendError):
    """A disruption budget protects the pod; the message is the server's."""


@dataclass(frozen=True, slots=True)
class DisplayedQueue:
    """A queue as others see it: what its jobs hold, as quantities by name, and its number of gangs by phase."""

    order: QueueOrder
    is_open: bool
    gangs: Mapping[GangPhase, int]
    allocated: Mapping[str, str]


class ExternalPods(Protocol):
    """The pods of others in one cluster. Every method may be called again with the same arguments."""

    rules: ExternalPodRules

    def list_pods(self, *, fresh: AbstractSet[str] = frozenset()) -> Mapping[str, Sequence[ExternalPod]]:
        """By namespace, all pods that are ours to place, or were; without namespaces that cannot be read now.

        `fresh`: namespaces to be read as of this moment.
        """

    def list_groups(self, namespaces: AbstractSet[str]) -> Mapping[str, Mapping[str, PodGroup]] | None:
        """PodGroups by namespace and name; without namespaces that cannot be read now.

        None: this cluster has no such objects.
        """

    def list_new_groups(self) -> Sequence[PodGroup]:
        """PodGroups that nobody has admitted yet, as far as they are ours to admit and can be read now."""

    def set_recorded(self, uids: AbstractSet[str]) -> None:
        """These pods have rows: what they take of nodes is not subtracted a second time in `nodes`."""

    def bind_many(
        self, binds: Iterable[tuple[ExternalPod, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[ExternalPod, str], BackendError | None]]:
        """Bind each to its node. Yields, and uses `heartbeat`, as `PodRunner.start_many` does."""

    def protected(self, pods: Sequence[ExternalPod], *, heartbeat: Callable[[], None]) -> Mapping[str, str]:
        """By uid, those of these pods that a disruption budget protects now, with the server's message."""

    def evict_many(
        self, pods: Iterable[ExternalPod], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[ExternalPod, BackendError | None]]:
        """Evict each, as far as budgets allow: EvictionRefused where they do not."""

    def write_reasons(
        self, reasons: Iterable[tuple[ExternalPod, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[ExternalPod, str], BackendError | None]]:
        """Write to each pod why it waits, for those who look at it in the cluster."""

    def set_group_phase(self, group: PodGroup, phase: str) -> None:
        """Write the group's phase, for those who wait for it. Raises BackendError where that cannot be done."""


class DisplayedQueues(Protocol):
    """Queues as objects in the cluster, for others who name them. `enabled`: else what was displayed is removed."""

    enabled: bool

    def display(self, queues: Sequence[DisplayedQueue], *, heartbeat: Callable[[], None]) -> None:
        """Others see these queues in the cluster, and none of ours that is not among them. Raises BackendError.

        `heartbeat` is called before each write, and stops it by what it raises.
        """
