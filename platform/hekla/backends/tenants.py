"""The contract with a backend that keeps tenants apart by more than their queues."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hekla.backends.base import Backend, BackendError, PodKey


@dataclass(frozen=True, slots=True)
class TenantOrder:
    """What a tenant is to have there. `resources`: no more may its pods ask for at once, as quantities by name."""

    tenant: str
    resources: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class TenantBackend(Backend, Protocol):
    """A place with walls between tenants."""

    def keep_tenants(
        self, orders: Iterable[TenantOrder], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[TenantOrder, BackendError | None]]:
        """Make what is around each tenant's pods, or make it as ordered; told and stopped as `start_many` is."""

    def leave_tenants(self, kept: Collection[str]) -> None:
        """Take away what is around the pods of all tenants but these, who alone have jobs here. Raises BackendError."""

    def is_of(self, key: PodKey, tenant: str) -> bool:
        """Whether a pod that was observed under this key is where those of this tenant are.

        Elsewhere people of another tenant may make pods, and name them as they like.
        """
