"""How a pod comes to run: it is made, then what belongs to it, then it is bound. Who finds it half done goes on."""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from hekla.backends.base import BackendError, PodKey, PodOrder, StartRefused
from hekla.backends.kubernetes import kinds, volumes
from hekla.backends.kubernetes.api import BAD_REQUEST, CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.cache import Cache
from hekla.backends.kubernetes.homes import Homes, is_over_quota
from hekla.backends.kubernetes.ingresses import Ingresses
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.places import Finder
from hekla.backends.kubernetes.priorities import Priorities
from hekla.backends.kubernetes.reading import Seen


class Starting:
    """The starts of one cluster. `has_run`: whether this order's pod is over and was recorded."""

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        manifests: Manifests,
        finder: Finder,
        homes: Homes,
        priorities: Priorities,
        ingresses: Ingresses,
        has_run: Callable[[PodOrder], bool],
    ) -> None:
        self._client, self._cache, self._manifests, self._finder = client, cache, manifests, finder
        self._homes, self._priorities, self._ingresses, self._has_run = homes, priorities, ingresses, has_run
        self._served: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._doors: dict[tuple[str, str, str], asyncio.Lock] = {}

    async def start(self, order: PodOrder) -> None:
        """Make the pod and what belongs to it, and bind it, as far as this is not done. Raises as the contract says."""
        if self._has_run(order):
            return
        async with self._homes.entered(order.key.tenant):
            pod = await self._made(order)
        if pod is None:
            raise BackendError("Somebody deleted the pod before it was bound")
        if pod.is_bound or pod.observation.phase.is_final:
            return
        for kind, manifest in self._manifests.files(order, pod.uid):
            await self._client.create_once(f"{self._finder.place(order.key)}/{kind}", manifest)
        await self._client.checkpoint()  # it may have been over, and deleted, before we made it anew
        await self._bind(pod, order.node)

    def forget_job(self, job: str) -> None:
        """It was deleted, as was all that its job has: a pod of this job that starts again needs it anew."""
        self._served.pop(job, None)
        self._ingresses.forget(job)

    async def _made(self, order: PodOrder) -> Seen | None:
        """The pod, made now or before. Raises StartRefused where the server takes no such pod."""
        priority_class = await self._priorities.class_for(order.priority)
        manifest = self._manifests.pod(order, priority_class=priority_class)
        for claim in volumes.named(order):
            await self._look_for(order.key, claim)
        try:
            for kind, shared in self._manifests.of_job(order):
                await self._make_shared(order.key, kind, shared)
            await self._ingresses.ensure(order, self._finder.place(order.key))
            made = await self._priorities.heard(
                priority_class, lambda: self._client.create_once(f"{self._finder.place(order.key)}/pods", manifest)
            )
        except ApiError as error:
            if error.status in (FORBIDDEN, NOT_FOUND) and not is_over_quota(error):  # what it needs may be gone
                self.forget_job(order.key.job)
                self._priorities.forget(order.priority)
            if error.status in (INVALID, BAD_REQUEST):
                raise StartRefused(f"Kubernetes does not take this pod, or what its job has: {error}") from error
            raise
        return self._cache.put(made) if made else await self._looked_up(order.key)

    async def _bind(self, pod: Seen, node: str) -> None:
        try:
            await self._client.create(f"{pod.path}/binding", self._manifests.binding(pod, node))
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise
            await self._make_sure(pod, node, error)

    async def _make_sure(self, pod: Seen, node: str, refusal: ApiError) -> None:
        """It is bound there already, or is not to be bound any more. Raises BackendError where neither is so."""
        found = await self._looked_up(pod.key)
        if found is None or found.uid != pod.uid or found.node == node:
            return
        if found.is_bound:
            raise BackendError(f"The pod is bound to {found.node} already") from refusal
        if not found.observation.phase.is_final:
            raise refusal

    async def _make_shared(self, key: PodKey, kind: str, manifest: Json) -> None:
        """What the job has for all its pods; who comes while it is made waits for it."""
        this = kind, str(manifest["metadata"]["name"])
        if this in self._served[key.job]:
            return
        door = (key.job, *this)
        async with self._doors.setdefault(door, asyncio.Lock()):
            if this not in self._served[key.job]:
                await self._client.create_once(kinds.path(self._finder.place(key), kind), manifest)
                self._served[key.job].add(this)
        self._doors.pop(door, None)

    async def _look_for(self, key: PodKey, claim: str) -> None:
        """Once a job: pods that are not there yet would wait for a claim for ever. Raises StartRefused."""
        this = kinds.CLAIMS, claim
        if this in self._served[key.job]:
            return
        place = self._finder.place(key)
        is_there = await self._client.find(f"{place}/{kinds.CLAIMS}/{claim}")
        if not is_there and not await self._looked_up(key):
            raise StartRefused(f"There is no claim “{claim}” in the namespace {place.rpartition('/')[2]}.")
        self._served[key.job].add(this)

    async def _looked_up(self, key: PodKey) -> Seen | None:
        found = await self._client.find(self._finder.pod(key))
        return self._cache.put(found) if found else None
