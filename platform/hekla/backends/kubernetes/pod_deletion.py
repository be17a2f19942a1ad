"""Stop a pod, and delete it after its end is recorded and its log is saved."""

import asyncio
import contextlib
from collections import defaultdict

from hekla.backends.base import BackendError, PodKey, StartDelayed
from hekla.backends.kubernetes import names, pod_state
from hekla.backends.kubernetes.api import BAD_REQUEST, NOT_FOUND, ApiError
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.frozen_claims import frozen_claim
from hekla.backends.kubernetes.layout import PodLocator, namespace_path
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.node_backoff import NodeBackoff
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.spool import Spool
from hekla.backends.kubernetes.tenant_namespaces import TenantNamespaces

MAX_LOG_BYTES = 64 * 2**20


class PodDeletion:
    """Stops and deletes pods in one cluster."""

    def __init__(
        self,
        client: AsyncClient,
        cache: PodCache,
        manifests: Manifests,
        locator: PodLocator,
        namespaces: TenantNamespaces,
        spool: Spool,
    ) -> None:
        self._client, self._cache, self._manifests, self._locator = client, cache, manifests, locator
        self._namespaces, self._spool, self._backoff = namespaces, spool, NodeBackoff()
        self._node_locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def stop(self, request: tuple[PodKey, str]) -> None:
        """Set the pod's deadline to now, with a reason. If it does not exist, create a tombstone that is never bound.

        If a quota on the number of pods has no room for the tombstone, nothing needs to end: a start that still creates
        the pod later passes a checkpoint before it binds the pod.
        """
        key, reason = request
        if self._spool.has(key):
            return
        known = self._locator.find(key)
        if known is not None and (known.observation.phase.is_final or known.is_stopping or known.is_deleted):
            return
        change = {"metadata": {"annotations": {names.STOPPED: reason}}, "spec": {"activeDeadlineSeconds": 1}}
        async with self._namespaces.provisioned(key.tenant):
            pod = await self._client.find(self._locator.pod_path(key))
            if pod is not None and pod_state.is_active(pod):
                self._cache.put(await self._client.patch(self._locator.pod_path(key), change))
        if pod is None:
            with contextlib.suppress(StartDelayed):
                await self._create_tombstone(key, reason)

    async def forget(self, key: PodKey) -> None:
        """Save the pod's log and delete it. Raises BackendError if either is not possible now."""
        pod = self._locator.find(key)
        if pod is not None and pod.is_deleted:  # its namespace may be gone too
            await self.save_log(pod)
        else:
            async with self._namespaces.provisioned(key.tenant):
                pod = pod or await self._read_pod(key)
                if pod is not None:
                    await self.save_log(pod)
                    if pod.leaves_claim:  # first: nobody looks for it once its pod is gone
                        await self._client.delete(
                            f"{namespace_path(pod.namespace)}/{frozen_claim(key)}", grace_seconds=0
                        )
                    await self._client.delete(pod.path, grace_seconds=0)
        if pod is not None:
            self._cache.dismiss([pod])

    async def save_log(self, pod: PodState) -> None:
        """Save the complete log. Raises BackendError if that may be possible later."""
        if not self._spool.has(pod.key):
            self._spool.save(pod.key, await self._final_log(pod))

    async def draft_log(self, pod: PodState) -> None:
        """Save the log until now, before the pod is deleted together with it. Raises BackendError like `save_log`."""
        if pod.is_bound and not pod.is_deleted and not self._spool.has(pod.key):
            self._spool.draft(pod.key, await self._final_log(pod))

    async def _create_tombstone(self, key: PodKey, reason: str) -> None:
        async with self._namespaces.provisioned(key.tenant):
            tombstone = self._manifests.tombstone(key, reason)
            made = await self._client.create_once(f"{self._locator.namespace_path(key)}/pods", tombstone)
        if made is None:  # it was started at this moment
            await self.stop((key, reason))
        else:
            self._cache.put(made)

    async def _final_log(self, pod: PodState) -> bytes:
        """The complete log. Reads one log at a time from a node, so a dead node is tried once and not for each pod."""
        if not pod.is_bound or pod.is_deleted:
            return b""
        async with self._node_locks[pod.node]:
            if self._backoff.may_try(pod.node) and (text := await self._try_to_read_log(pod)) is not None:
                return text
        if not self._backoff.is_silent(pod.node):
            raise BackendError(f"The log cannot be read from {pod.node} now")
        return f"[hekla] The log cannot be read: {pod.node} does not answer\n".encode()

    async def _try_to_read_log(self, pod: PodState) -> bytes | None:
        """The log, or None if the node does not answer. Raises BackendError if the server does not answer."""
        try:
            text = await self._log(pod)
        except BackendError:
            await self._client.get(pod.path)
            self._backoff.record_failure(pod.node)
            return None
        self._backoff.record_success(pod.node)
        return text

    async def _log(self, pod: PodState) -> bytes:
        try:
            return await self._client.text(f"{pod.path}/log", container=names.MAIN, limitBytes=MAX_LOG_BYTES)
        except ApiError as error:
            if error.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            return pod_state.missing_log(error, pod)

    async def _read_pod(self, key: PodKey) -> PodState | None:
        found = await self._client.find(self._locator.pod_path(key))
        return self._cache.put(found) if found else None
