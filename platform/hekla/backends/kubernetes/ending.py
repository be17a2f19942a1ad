"""How a pod comes to its end, and how it is let go once its end is recorded: its log is kept, then it is deleted."""

import asyncio
import contextlib
from collections import defaultdict

from hekla.backends.base import BackendError, PodKey, StartDelayed
from hekla.backends.kubernetes import names, reading
from hekla.backends.kubernetes.api import BAD_REQUEST, NOT_FOUND, ApiError
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.cache import Cache
from hekla.backends.kubernetes.homes import Homes
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.places import Finder
from hekla.backends.kubernetes.reading import Seen
from hekla.backends.kubernetes.silence import SilentNodes
from hekla.backends.kubernetes.spool import Spool

MAX_LOG_BYTES = 64 * 2**20


class Ending:
    """The ends of one cluster's pods."""

    def __init__(
        self, client: AsyncClient, cache: Cache, manifests: Manifests, finder: Finder, homes: Homes, spool: Spool
    ) -> None:
        self._client, self._cache, self._manifests, self._finder = client, cache, manifests, finder
        self._homes, self._spool, self._silent = homes, spool, SilentNodes()
        self._asked: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def stop(self, wish: tuple[PodKey, str]) -> None:
        """Its deadline is now, for that reason. One that was not made yet is made as one that is never bound.

        Where a quota on the number of pods has no room for that one either, nothing is there to be ended: whoever
        would still make the pod, once there is room, asks for leave before binding it.
        """
        key, reason = wish
        if self._spool.has(key):
            return
        known = self._finder.seen(key)
        if known is not None and (known.observation.phase.is_final or known.is_stopping or known.is_gone):
            return
        change = {"metadata": {"annotations": {names.STOPPED: reason}}, "spec": {"activeDeadlineSeconds": 1}}
        async with self._homes.entered(key.tenant):
            pod = await self._client.find(self._finder.pod(key))
            if pod is not None and reading.is_to_go_on(pod):
                self._cache.put(await self._client.patch(self._finder.pod(key), change))
        if pod is None:
            with contextlib.suppress(StartDelayed):
                await self._bury(key, reason)

    async def forget(self, key: PodKey) -> None:
        """Raises BackendError where its log cannot be read now, or the pod not be deleted."""
        pod = self._finder.seen(key)
        if pod is not None and pod.is_gone:  # its namespace may be gone too
            await self.keep_log(pod)
        else:
            async with self._homes.entered(key.tenant):
                pod = pod or await self._looked_up(key)
                if pod is not None:
                    await self.keep_log(pod)
                    await self._client.delete(pod.path, grace_seconds=0)
        if pod is not None:
            self._cache.dismiss([pod])

    async def keep_log(self, pod: Seen) -> None:
        """All that it wrote. Raises BackendError where it may be had later."""
        if not self._spool.has(pod.key):
            self._spool.keep(pod.key, await self._last_log(pod))

    async def draft_log(self, pod: Seen) -> None:
        """What it wrote until now, if it is about to go together with its log. Raises BackendError as `keep_log`."""
        if pod.is_bound and not pod.is_gone and not self._spool.has(pod.key):
            self._spool.draft(pod.key, await self._last_log(pod))

    async def _bury(self, key: PodKey, reason: str) -> None:
        async with self._homes.entered(key.tenant):
            tombstone = self._manifests.tombstone(key, reason)
            made = await self._client.create_once(f"{self._finder.place(key)}/pods", tombstone)
        if made is None:  # it was started at this moment
            await self.stop((key, reason))
        else:
            self._cache.put(made)

    async def _last_log(self, pod: Seen) -> bytes:
        """One machine is asked for one log at a time: if it does not answer, the others need not wait for it too."""
        if not pod.is_bound or pod.is_gone:
            return b""
        async with self._asked[pod.node]:
            if self._silent.is_to_be_asked(pod.node) and (text := await self._asked_for(pod)) is not None:
                return text
        if not self._silent.is_given_up(pod.node):
            raise BackendError(f"The log cannot be read from {pod.node} now")
        return f"[hekla] The log cannot be read: {pod.node} does not answer\n".encode()

    async def _asked_for(self, pod: Seen) -> bytes | None:
        """The log; None: its machine does not answer. Raises BackendError where it is the server that does not."""
        try:
            text = await self._log(pod)
        except BackendError:
            await self._client.get(pod.path)
            self._silent.did_not_answer(pod.node)
            return None
        self._silent.answered(pod.node)
        return text

    async def _log(self, pod: Seen) -> bytes:
        try:
            return await self._client.text(f"{pod.path}/log", container=names.MAIN, limitBytes=MAX_LOG_BYTES)
        except ApiError as error:
            if error.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            return reading.no_log(error, pod)

    async def _looked_up(self, key: PodKey) -> Seen | None:
        found = await self._client.find(self._finder.pod(key))
        return self._cache.put(found) if found else None
