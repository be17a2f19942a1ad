"""The backend facet that isolates tenants in the cluster: namespaces, network policies, quotas."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hekla.backends.base import BackendError, PodKey


@dataclass(frozen=True, slots=True)
class TenantOrder:
    """The desired state of a tenant. `resources`: the limit on the total requests of its pods, as quantities."""

    tenant: str
    resources: Mapping[str, str] = field(default_factory=dict)


class Tenancy(Protocol):
    """Namespaces, network policies and quotas of tenants in one cluster."""

    def apply_many(
        self, orders: Iterable[TenantOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[TenantOrder, BackendError | None]]:
        """Create or update the objects of each tenant. Yields, and calls `heartbeat`, like `PodRunner.start_many`."""

    def remove_others(self, tenants: Collection[str]) -> None:
        """Delete the objects of all other tenants. `tenants`: those with jobs in this cluster. Raises BackendError."""

    def owns(self, tenant: str, key: PodKey) -> bool:
        """Whether the pod observed with this key is in the tenant's own namespace.

        In other namespaces, people of other tenants may create pods with any name.
        """
