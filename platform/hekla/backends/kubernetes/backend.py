"""The backend `kubernetes`, scheduled by Hekla: our pods are bound to the nodes that the engine chose.

A pod is created, then its objects, then it is bound; an interrupted start is continued. To stop a pod, its deadline is
set to now: the kubelet ends it, and the object stays until its end is recorded. Deletion would lose its exit code and
log. After the end is recorded, `forget` saves the log and deletes the pod.
"""

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from hekla.backends.base import BackendError, PodKey, PodOrder
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.budgets import KubernetesBudgets
from hekla.backends.kubernetes.cluster import KubernetesCluster
from hekla.backends.kubernetes.device_store import DeviceStore
from hekla.backends.kubernetes.displayed_queues import KubernetesQueues
from hekla.backends.kubernetes.external_pods import KubernetesExternalPods
from hekla.backends.kubernetes.frozen_claims import KubernetesFrozenFolders
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.runtime_classes import RuntimeClassStore
from hekla.backends.kubernetes.storage_store import StorageStore
from hekla.domain.addresses import Replica
from hekla.lib.once_property import once_property

log = logging.getLogger(__name__)
FORGET_PATIENCE_SECONDS = 2.0


class KubernetesBackend(KubernetesCluster):
    """A cluster whose pods Hekla's engine places."""

    @once_property
    def runner(self) -> "KubernetesRunner":
        return KubernetesRunner(self.parts)

    @once_property
    def budgets(self) -> KubernetesBudgets:
        parts = self.parts
        return KubernetesBudgets(parts.client, parts.cache, parts.locator, parts.cluster, parts.budgets)

    @property
    def frozen(self) -> KubernetesFrozenFolders:
        return KubernetesFrozenFolders(self.parts.api, self.parts.locator)

    @property
    def objects(self) -> DeviceStore | None:
        return self.parts.devices if self.parts.config.devices else None

    @property
    def storage(self) -> StorageStore | None:
        return self.parts.storage if self.parts.config.storage else None

    @property
    def runtime_classes(self) -> RuntimeClassStore | None:
        return self.parts.runtime_classes if self.parts.config.runtime_classes else None

    @once_property
    def external_pods(self) -> KubernetesExternalPods | None:
        config, parts = self.parts.config.external_pods, self.parts
        if config is None:
            return None
        claims = parts.claim_allocation if parts.config.devices else None
        return KubernetesExternalPods(
            config,
            parts.api,
            parts.client,
            parts.context.clock,
            parts.cache.wake,
            parts.priority_classes.value_of,
            parts.volume_binding,
            claims,
        )

    @once_property
    def displayed_queues(self) -> KubernetesQueues | None:
        config, parts = self.parts.config.external_pods, self.parts
        return KubernetesQueues(parts.api, parts.cluster, enabled=config.shows_queues) if config else None

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Save the logs of these pods, and delete them. `observe` reports again those that fail or take too long."""
        give_up_at = time.monotonic() + FORGET_PATIENCE_SECONDS
        soon = itertools.takewhile(lambda _key: time.monotonic() < give_up_at, keys)
        for key, error in self.parts.client.run_each(self.parts.pod_deletion.forget, soon, _no_heartbeat):
            if error is not None:
                log.info("could not forget %s, will try again: %s", key.name, error)

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        external = vars(self).get("external_pods")
        return super().fault or (external.fault if external else "")

    def close(self) -> None:
        """End the watches."""
        if external := vars(self).get("external_pods"):
            external.close()
        super().close()


class KubernetesRunner:
    """Implements `base.PodRunner`. Handles many pods concurrently, because most of the time is the server's."""

    def __init__(self, parts: KubernetesParts) -> None:
        self._parts = parts

    def address(self, replica: Replica) -> str:
        """The DNS name of the replica within the service of its job."""
        return names.address_of(replica)

    def start_many(
        self, orders: Iterable[PodOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Create each pod and its objects, and bind it. Steps that are done already are skipped."""
        return self._parts.client.run_each(self._parts.pod_creation.start, orders, heartbeat)

    def stop_many(
        self, requests: Iterable[tuple[PodKey, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Set the deadline of each pod to now. If a pod does not exist, create a tombstone that is never bound."""
        return self._parts.client.run_each(self._parts.pod_deletion.stop, requests, heartbeat)


def _no_heartbeat() -> None:
    """The heartbeat of calls without a lease to renew."""
