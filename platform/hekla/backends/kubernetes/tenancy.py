"""The tenancy facet: applies the objects of tenants, and tells whose pods are whose."""

from collections.abc import Callable, Collection, Iterable, Iterator

from hekla.backends.base import BackendError, PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.layout import namespace_path
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.resource_paths import POLICIES, resource_path
from hekla.backends.tenancy import TenantOrder


class KubernetesTenancy:
    """Implements `tenancy.Tenancy`."""

    def __init__(self, parts: KubernetesParts) -> None:
        self._parts = parts

    def apply_many(
        self, orders: Iterable[TenantOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[TenantOrder, BackendError | None]]:
        """Apply many tenants concurrently."""
        return self._parts.client.run_each(self._parts.tenant_namespaces.apply, orders, heartbeat)

    def remove_others(self, tenants: Collection[str]) -> None:
        """Delete their policies if tenants share a namespace. A tenant's own namespace stays."""
        places, api = self._parts.layout, self._parts.api
        if places.per_tenant:
            return
        place, present = (
            resource_path(namespace_path(places.base), POLICIES),
            set(map(names.tenant, tenants)),
        )
        for page in api.pages(place, labelSelector=f"{self._parts.ours},{names.TENANT},!{names.JOB}"):
            for one in page.get("items") or ():
                if one["metadata"]["labels"][names.TENANT] not in present:
                    api.delete(f"{place}/{one['metadata']['name']}")

    def owns(self, tenant: str, key: PodKey) -> bool:
        """By the namespace in which the pod was observed."""
        return self._parts.layout.owns(tenant, key)
