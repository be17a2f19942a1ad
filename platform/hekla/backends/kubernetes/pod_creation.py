"""Start a pod: create it, then its objects, prepare its claims, then bind it. An interrupted start is continued."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from hekla.backends.base import BackendError, PodKey, PodOrder, StartRefused
from hekla.backends.kubernetes import runtime_settings, volumes
from hekla.backends.kubernetes.api import BAD_REQUEST, CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.claim_allocation import ClaimAllocation
from hekla.backends.kubernetes.frozen_claims import frozen_claim
from hekla.backends.kubernetes.ingresses import Ingresses
from hekla.backends.kubernetes.layout import PodLocator, namespace_path
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.priority_classes import PodPriorityClasses
from hekla.backends.kubernetes.resource_paths import CLAIMS, resource_path
from hekla.backends.kubernetes.tenant_namespaces import TenantNamespaces, is_over_quota
from hekla.backends.kubernetes.volume_binding import VolumeBinding


class PodCreation:
    """Starts pods in one cluster. `has_run`: whether the pod of this order has ended and its end is recorded."""

    def __init__(
        self,
        client: AsyncClient,
        cache: PodCache,
        manifests: Manifests,
        locator: PodLocator,
        namespaces: TenantNamespaces,
        priority_classes: PodPriorityClasses,
        ingresses: Ingresses,
        claims: ClaimAllocation,
        volume_binding: VolumeBinding,
        has_run: Callable[[PodOrder], bool],
    ) -> None:
        self._client, self._cache, self._manifests, self._locator = client, cache, manifests, locator
        self._namespaces, self._priority_classes, self._ingresses = namespaces, priority_classes, ingresses
        self._claims, self._volume_binding, self._has_run = claims, volume_binding, has_run
        self._created: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._locks: dict[tuple[str, str, str], asyncio.Lock] = {}

    async def start(self, order: PodOrder) -> None:
        """Create the pod and its objects, allocate its claims, and bind it. Steps that are done already are skipped.

        Raises StartRefused, StartDelayed, NodeUnsuitable, BackendError.
        """
        if self._has_run(order):
            return
        async with self._namespaces.provisioned(order.key.tenant):
            pod = await self._create_pod(order)
        if pod is None:
            raise BackendError("The pod was deleted before it was bound")
        if order.freezes and order.key.attempt > 1 and not pod.is_bound:
            before = replace(order.key, attempt=order.key.attempt - 1)
            await self._client.delete(f"{namespace_path(pod.namespace)}/{frozen_claim(before)}", grace_seconds=0)
        if pod.is_bound or pod.observation.phase.is_final:
            return
        for kind, manifest in self._manifests.files(order, pod.uid):
            await self._client.create_once(f"{self._locator.namespace_path(order.key)}/{kind}", manifest)
        if order.settings.resource_claims:
            await self._claims.allocate(order.settings.resource_claims, order.node, pod)
            pod = await self._read_pod(order.key) or pod  # its status names its claims now
        await self._volume_binding.bind(list(volumes.claim_names(order)), order.node, pod.namespace)
        await self._client.checkpoint()  # the pod may have ended and been deleted before we created it again
        await self._bind(pod, order)

    def forget_job(self, job: str) -> None:
        """Forget the job's shared objects, because they were deleted: its next pod creates them again."""
        self._created.pop(job, None)
        self._ingresses.forget(job)

    async def _create_pod(self, order: PodOrder) -> PodState | None:
        """Create the pod unless it exists. None if it is gone. Raises StartRefused if the server rejects such a pod."""
        priority_class = await self._priority_classes.class_for(order.priority)
        manifest = self._manifests.pod(order, priority_class=priority_class)
        for claim in () if self._volume_binding.enabled else volumes.existing_claims(order):
            await self._require_claim(order.key, claim)
        if order.frozen:
            await self._require_claim(order.key, volumes.work_claim(order))
        if (missing := await self._claims.missing(order)) and not await self._read_pod(order.key):
            raise StartRefused(missing)
        try:
            for kind, shared in self._manifests.shared(order):
                await self._create_shared(order.key, kind, shared)
            await self._ingresses.ensure(order, self._locator.namespace_path(order.key))
            made = await self._priority_classes.create_with(
                priority_class,
                lambda: self._client.create_once(f"{self._locator.namespace_path(order.key)}/pods", manifest),
            )
        except ApiError as error:
            if error.status in (FORBIDDEN, NOT_FOUND) and not is_over_quota(error):  # its objects may have been deleted
                self.forget_job(order.key.job)
                self._priority_classes.forget(order.priority)
            if error.status in (INVALID, BAD_REQUEST) or runtime_settings.is_without_runtime_class(error):
                raise StartRefused(f"Kubernetes does not take this pod, or what its job has: {error}") from error
            raise
        return self._cache.put(made) if made else await self._read_pod(order.key)

    async def _bind(self, pod: PodState, order: PodOrder) -> None:
        try:
            await self._client.create(f"{pod.path}/binding", self._manifests.binding(pod, order))
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise
            await self._check_refused_binding(pod, order.node, error)

    async def _check_refused_binding(self, pod: PodState, node: str, refusal: ApiError) -> None:
        """Raise BackendError unless the pod is already bound to this node, has ended or is gone."""
        found = await self._read_pod(pod.key)
        if found is None or found.uid != pod.uid or found.node == node:
            return
        if found.is_bound:
            raise BackendError(f"The pod is bound to {found.node} already") from refusal
        if not found.observation.phase.is_final:
            raise refusal

    async def _create_shared(self, key: PodKey, kind: str, manifest: Json) -> None:
        """Create an object that all pods of the job share, once. Other starts wait until it is created."""
        shared = kind, str(manifest["metadata"]["name"])
        if shared in self._created[key.job]:
            return
        lock_key = (key.job, *shared)
        async with self._locks.setdefault(lock_key, asyncio.Lock()):
            if shared not in self._created[key.job]:
                await self._client.create_once(resource_path(self._locator.namespace_path(key), kind), manifest)
                self._created[key.job].add(shared)
        self._locks.pop(lock_key, None)

    async def _require_claim(self, key: PodKey, claim: str) -> None:
        """Check once per job that the claim exists: a pod would wait forever for a missing one. Raises StartRefused."""
        found = CLAIMS, claim
        if found in self._created[key.job]:
            return
        namespace = self._locator.namespace_path(key)
        is_there = await self._client.find(f"{namespace}/{CLAIMS}/{claim}")
        if not is_there and not await self._read_pod(key):
            raise StartRefused(f"There is no claim “{claim}” in the namespace {namespace.rpartition('/')[2]}.")
        self._created[key.job].add(found)

    async def _read_pod(self, key: PodKey) -> PodState | None:
        found = await self._client.find(self._locator.pod_path(key))
        return self._cache.put(found) if found else None
