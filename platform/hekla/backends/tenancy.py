"""The facet of a backend that separates tenants by more than their queues."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hekla.backends.base import BackendError, PodKey


@dataclass(frozen=True, slots=True)
class TenantOrder:
    """What a tenant has in the cluster. `resources`: a limit on what its pods request together, as quantities."""

    tenant: str
    resources: Mapping[str, str] = field(default_factory=dict)


class Tenancy(Protocol):
    """Namespaces, network policies and quotas of tenants in one cluster."""

    def apply_many(
        self, orders: Iterable[TenantOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[TenantOrder, BackendError | None]]:
        """Create or update what surrounds each tenant's pods. Yields, and uses `heartbeat`, as `start_many` does."""

    def remove_others(self, tenants: Collection[str]) -> None:
        """Delete what surrounds the pods of all tenants but these, which alone have jobs here. Raises BackendError."""

    def owns(self, tenant: str, key: PodKey) -> bool:
        """Whether a pod observed under this key is where this tenant's pods are.

        Elsewhere people of another tenant may create pods, and name them as they like.
        """
