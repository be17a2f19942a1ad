"""The backend `kubernetes`, scheduled by Hekla: our pods are bound where the engine put them.

A pod is created, then its objects, then it is bound; a start that was cut off is continued. To end a pod its deadline
is set to now, so that its kubelet ends it and the object stays until its end is recorded: with a deleted pod its exit
code and log would be lost. Only when the end is recorded (`forget`) its log is saved and the pod deleted.
"""

import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property

from hekla.backends.base import BackendError, PodKey, PodOrder
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.budgets import KubernetesBudgets
from hekla.backends.kubernetes.cluster import KubernetesCluster
from hekla.backends.kubernetes.displayed_queues import KubernetesQueues
from hekla.backends.kubernetes.external_pods import KubernetesExternalPods
from hekla.backends.kubernetes.layout import namespace_path
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.resource_paths import POLICIES, resource_path
from hekla.backends.tenancy import TenantOrder
from hekla.domain.addresses import Replica

log = logging.getLogger(__name__)
FORGET_PATIENCE_SECONDS = 2.0


class KubernetesBackend(KubernetesCluster):
    """A cluster whose pods our engine places."""

    @cached_property
    def runner(self) -> "KubernetesRunner":
        return KubernetesRunner(self.parts)

    @cached_property
    def tenancy(self) -> "KubernetesTenancy":
        return KubernetesTenancy(self.parts)

    @cached_property
    def budgets(self) -> KubernetesBudgets:
        parts = self.parts
        return KubernetesBudgets(parts.client, parts.cache, parts.locator, parts.cluster)

    @cached_property
    def external_pods(self) -> KubernetesExternalPods | None:
        config, parts = self.parts.config.external_pods, self.parts
        if config is None:
            return None
        return KubernetesExternalPods(config, parts.api, parts.client, parts.context.clock, parts.cache.wake)

    @cached_property
    def displayed_queues(self) -> KubernetesQueues | None:
        config, parts = self.parts.config.external_pods, self.parts
        return KubernetesQueues(parts.api, parts.cluster, enabled=config.shows_queues) if config else None

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Save their logs, and delete them. What fails, or takes too long, is left: `observe` reports it again."""
        give_up_at = time.monotonic() + FORGET_PATIENCE_SECONDS
        soon = itertools.takewhile(lambda _key: time.monotonic() < give_up_at, keys)
        for key, error in self.parts.client.run_each(self.parts.pod_deletion.forget, soon, _no_heartbeat):
            if error is not None:
                log.info("could not forget %s, will try again: %s", key.name, error)

    def close(self) -> None:
        """End the watches."""
        if external := vars(self).get("external_pods"):
            external.close()
        super().close()


class KubernetesRunner:
    """Implements `base.PodRunner`. Many pods at once: it is the server that takes the time."""

    def __init__(self, parts: KubernetesParts) -> None:
        self._parts = parts

    def address(self, replica: Replica) -> str:
        """Its name within the service of its job."""
        return names.address_of(replica)

    def start_many(
        self, orders: Iterable[PodOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Make each pod and what belongs to it, and bind it, as far as this is not done."""
        return self._parts.client.run_each(self._parts.pod_creation.start, orders, heartbeat)

    def stop_many(
        self, requests: Iterable[tuple[PodKey, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Set the deadline of each to now. One that was not made yet is made as one that is never bound."""
        return self._parts.client.run_each(self._parts.pod_deletion.stop, requests, heartbeat)


class KubernetesTenancy:
    """Implements `tenancy.Tenancy`."""

    def __init__(self, parts: KubernetesParts) -> None:
        self._parts = parts

    def apply_many(
        self, orders: Iterable[TenantOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[TenantOrder, BackendError | None]]:
        """Many at once."""
        return self._parts.client.run_each(self._parts.tenant_namespaces.apply, orders, heartbeat)

    def remove_others(self, tenants: Collection[str]) -> None:
        """Their policies, where they share a namespace; one that is a tenant's own stays, as the tenant does."""
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
        """By the namespace in which it was seen."""
        return self._parts.layout.owns(tenant, key)


def _no_heartbeat() -> None:
    """What runs without a lease to renew."""
