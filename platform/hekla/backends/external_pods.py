"""The backend facets for external pods: pods that others created and the engine places, and queues displayed to them.

External pods have no `PodKey`; their objects in the cluster identify them.
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


class BindRefused(BackendError):
    """The cluster answers that it does not bind the pod to this node now; the message is the server's."""


@dataclass(frozen=True, slots=True)
class ExternalBind:
    """A pod, its node, and the annotations that it gets, for example with its cards."""

    pod: ExternalPod
    node: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DisplayedQueue:
    """A queue as displayed: the resources that its jobs hold, as quantities by name, and its gangs by phase."""

    order: QueueOrder
    is_open: bool
    gangs: Mapping[GangPhase, int]
    allocated: Mapping[str, str]


class ExternalPods(Protocol):
    """The external pods of one cluster. All methods are idempotent."""

    rules: ExternalPodRules

    def list_pods(self, *, fresh: AbstractSet[str] = frozenset()) -> Mapping[str, Sequence[ExternalPod]]:
        """By namespace, all pods that Hekla places or has placed; without namespaces that cannot be read now.

        `fresh`: namespaces to read as of this moment.
        """

    def list_groups(self, namespaces: AbstractSet[str]) -> Mapping[str, Mapping[str, PodGroup]] | None:
        """PodGroups by namespace and name; without namespaces that cannot be read now.

        None: the cluster has no PodGroups.
        """

    def list_new_groups(self) -> Sequence[PodGroup]:
        """PodGroups not admitted yet that Hekla admits, as far as they can be read now."""

    def set_recorded(self, uids: AbstractSet[str]) -> None:
        """Tell the backend which pods have rows, so `nodes` does not subtract their resources a second time."""

    def bind_many(
        self, binds: Iterable[ExternalBind], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[ExternalBind, BackendError | None]]:
        """Bind each pod to its node. Yields, and calls `heartbeat`, like `PodRunner.start_many`.

        Yields NodeUnsuitable, StartDelayed or BindRefused if the cluster does not bind it there.
        """

    def protected(self, pods: Sequence[ExternalPod], *, heartbeat: Callable[[], None]) -> Mapping[str, str]:
        """By uid, the pods among these that a disruption budget protects now, with the server's message."""

    def evict_many(
        self, pods: Iterable[ExternalPod], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[ExternalPod, BackendError | None]]:
        """Evict each pod. Yields EvictionRefused if a disruption budget forbids it."""

    def write_reasons(
        self, reasons: Iterable[tuple[ExternalPod, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[ExternalPod, str], BackendError | None]]:
        """Write to each pod why it is pending, for people who inspect it in the cluster."""

    def set_group_phase(self, group: PodGroup, phase: str) -> None:
        """Write the group's phase, for controllers that wait for it. Raises BackendError."""


class DisplayedQueues(Protocol):
    """Queues as objects in the cluster, for pods that name them. Not `enabled`: displayed queues are removed."""

    enabled: bool

    def display(self, queues: Sequence[DisplayedQueue], *, heartbeat: Callable[[], None]) -> None:
        """Display these queues in the cluster, and delete Hekla's other queues there. Raises BackendError.

        `heartbeat` is called before each write; an exception from it cancels the write.
        """
