"""The contract with a backend that has pods of others which are placed from here.

It stands beside `base.Backend`. Pods are named by their objects, since nobody gave them a `PodKey`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hekla.backends.base import Backend, BackendError
from hekla.backends.entrusted import QueueOrder
from hekla.domain.external_pods import ExternalPod, ExternalPodRules, PodGroup
from hekla.domain.phases import GangPhase


class EvictionRefused(BackendError):
    """A budget of disruptions keeps the pod; its message is the server's sentence."""


@dataclass(frozen=True, slots=True)
class ShownQueue:
    """A queue as others see it: what its jobs hold, as quantities by name, and how many of their gangs are how far."""

    order: QueueOrder
    is_open: bool
    gangs: Mapping[GangPhase, int]
    allocated: Mapping[str, str]


class Adoption(Protocol):
    """The pods of others in one cluster. Every method may be called again with the same arguments.

    `shows_queues`: others are to see there which queues they may name.
    """

    rules: ExternalPodRules
    shows_queues: bool

    def pods(self, *, afresh: AbstractSet[str] = frozenset()) -> Mapping[str, Sequence[ExternalPod]]:
        """By namespace, all that are ours to place, or were; without namespaces that cannot be looked at now.

        `afresh`: namespaces that are to be seen as of this moment.
        """

    def groups(self, namespaces: AbstractSet[str]) -> Mapping[str, Mapping[str, PodGroup]] | None:
        """By namespace and name, the objects that hold pods together; without namespaces that cannot be looked at now.

        None: this cluster has no such objects.
        """

    def new_groups(self) -> Sequence[PodGroup]:
        """Those that nobody has let in yet, as far as it is ours to do that and they can be seen now."""

    def count(self, uids: AbstractSet[str]) -> None:
        """These have rows: what they take of machines is not to be told as taken by others."""

    def bind_many(
        self, binds: Iterable[tuple[ExternalPod, str]], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[tuple[ExternalPod, str], BackendError | None]]:
        """Give each its node. `meanwhile` as in `Backend.start_many`."""

    def kept(self, pods: Sequence[ExternalPod], *, meanwhile: Callable[[], None]) -> Mapping[str, str]:
        """By uid, those of these pods that a budget keeps now, with the server's sentence."""

    def evict_many(
        self, pods: Iterable[ExternalPod], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[ExternalPod, BackendError | None]]:
        """Have each go, as far as budgets allow: EvictionRefused where they do not."""

    def tell_many(
        self, told: Iterable[tuple[ExternalPod, str]], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[tuple[ExternalPod, str], BackendError | None]]:
        """Write to each why it waits, for those who look at it in the cluster."""

    def advance_group(self, group: PodGroup, phase: str) -> None:
        """Write how far the group is, for those who wait for it. Raises BackendError where that cannot be done."""

    def show_queues(self, queues: Sequence[ShownQueue], *, meanwhile: Callable[[], None]) -> None:
        """Others see these queues in the cluster, and none of ours that is not among them. Raises BackendError.

        `meanwhile` is called before each write, and stops it by what it raises.
        """


@runtime_checkable
class AdoptingBackend(Backend, Protocol):
    """A backend that may have such pods. `adoption`: None where it is not to look for them."""

    adoption: Adoption | None
