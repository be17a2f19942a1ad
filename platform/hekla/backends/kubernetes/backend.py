"""The backend `kubernetes`, scheduled by Hekla: our pods are bound where the engine put them.

A pod is made, then what belongs to it, then it is bound; whoever finds one half done goes on with it. To end a pod its
deadline is set to now, so that its kubelet ends it and the object stays until its end is recorded: a pod that is
deleted takes its exit code and its log along. Only when the end stands in the rows (`forget`) the log is fetched and
the pod deleted.
"""

import asyncio
import itertools
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from hekla.backends import config as configuration
from hekla.backends.base import (
    BackendError,
    Capabilities,
    Inventory,
    LogChunk,
    NodeInfo,
    Observations,
    PodKey,
    PodOrder,
    UnknownPod,
    Use,
)
from hekla.backends.kubernetes import access, entering, kinds, names, nodes, reading
from hekla.backends.kubernetes.adoption import KubernetesAdoption
from hekla.backends.kubernetes.api import BAD_REQUEST, FORBIDDEN, NOT_FOUND, Api, ApiError
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.budgets import Budgets
from hekla.backends.kubernetes.cache import Cache
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.ending import MAX_LOG_BYTES, Ending
from hekla.backends.kubernetes.homes import Homes
from hekla.backends.kubernetes.ingresses import Ingresses
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.places import Finder, Places, path
from hekla.backends.kubernetes.priorities import Priorities
from hekla.backends.kubernetes.reading import Seen
from hekla.backends.kubernetes.spool import Spool
from hekla.backends.kubernetes.starting import Starting
from hekla.backends.lines import Command, Line
from hekla.backends.tenants import TenantOrder
from hekla.domain.addresses import Replica
from hekla.domain.resources import Resources
from hekla.lib.clock import Clock

log = logging.getLogger(__name__)
REMOVE_PATIENCE_SECONDS = 10.0
FORGET_PATIENCE_SECONDS = 2.0
_SAFE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class KubernetesBackend:
    """Implements `tenants.TenantBackend`. Any number of processes may open the same cluster."""

    capabilities = Capabilities(simulated=False, enforces_limits=True, has_endpoints=True, runs_commands=True)

    def __init__(
        self, *, cluster: str, config: Mapping[str, Any], home: Path, clock: Clock, key: str | None = None
    ) -> None:
        self._config = configuration.read(KubernetesConfig, config)
        self._cluster, self._home, self._clock, self._key = cluster, home, clock, key
        self._spool = Spool(home / "kubernetes" / cluster / "logs")
        self._manifests, self._places = Manifests(cluster, self._config), Places(self._config)
        self._ours = names.selector({names.CLUSTER: cluster})

    def nodes(self) -> Sequence[NodeInfo]:
        """The machines, less what the pods of others take of them."""
        running = "status.phase!=Succeeded,status.phase!=Failed"
        pages = self._api.pages(
            "/api/v1/pods", labelSelector=f"{names.CLUSTER}!={self._cluster}", fieldSelector=running
        )
        counted = self.adoption.counted if self.adoption else frozenset()
        others = (pod for page in pages for pod in page.get("items") or () if pod["metadata"]["uid"] not in counted)
        taken = nodes.taken_by_others(others)
        wanted = names.selector(self._config.node_labels)
        pages = self._api.pages("/api/v1/nodes", labelSelector=wanted)
        found = [node for page in pages for node in page.get("items") or ()]
        return [nodes.info(node, taken.get(node["metadata"]["name"], Resources())) for node in found]

    def address(self, replica: Replica) -> str:
        """Its name within the service of its job."""
        return names.address_of(replica)

    def start(self, order: PodOrder) -> None:
        """Make the pod and what belongs to it, and bind it, as far as this is not done. Raises as the contract says."""
        self._client.run_all(self._starting.start, [order])

    def start_many(
        self, orders: Iterable[PodOrder], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Many at once: it is the server that takes the time."""
        return self._client.run_each(self._starting.start, orders, meanwhile)

    def stop(self, key: PodKey, *, reason: str) -> None:
        """Its deadline is now. One that was not made yet is made as one that is never bound."""
        self._client.run_all(self._ending.stop, [(key, reason)])

    def stop_many(
        self, wishes: Iterable[tuple[PodKey, str]], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Many at once."""
        return self._client.run_each(self._ending.stop, wishes, meanwhile)

    def kept(self, keys: Sequence[PodKey], *, meanwhile: Callable[[], None]) -> Mapping[PodKey, str]:
        """As the server says of each at this moment."""
        return Budgets(self._client, self._cache, self._finder, self._cluster).kept(keys, meanwhile)

    def observe(self, since: str | None) -> Observations:
        """All pods as the server has them, or those that changed after the cursor."""
        told = self._cache.since(since) if since else None
        pods, cursor = told or self._cache.list_now()
        return Observations([pod.observation for pod in pods if pod.has_begun], cursor, complete=told is None)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Keep their logs, and delete them. What cannot be done now, or soon, is left: `observe` tells of it again."""
        give_up_at = time.monotonic() + FORGET_PATIENCE_SECONDS
        soon = itertools.takewhile(lambda _key: time.monotonic() < give_up_at, keys)
        for key, error in self._client.run_each(self._ending.forget, soon, _nothing):
            if error is not None:
                log.info("could not forget %s, will try again: %s", key.name, error)

    def wait(self, timeout_seconds: float) -> bool:
        """Until the server tells of a change."""
        return self._cache.wait(timeout_seconds)

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """From the node as long as the pod is there, from what was kept afterwards."""
        try:
            return self._spool.read(key, offset, limit)
        except FileNotFoundError:
            pod = self._found(key)
        if pod is None:
            raise UnknownPod(f"There is no pod {key.name} here")
        wanted = min(max(offset, 0) + limit, MAX_LOG_BYTES)
        text = self._log(pod, wanted)
        begin = min(max(offset, 0), len(text))
        data = text[begin : begin + limit]
        is_all = len(text) < wanted or wanted == MAX_LOG_BYTES
        return LogChunk(data, begin, begin + len(data), complete=pod.observation.phase.is_final and is_all)

    def use(self, keys: Sequence[PodKey]) -> Sequence[Use]:  # noqa: ARG002
        """What a cluster can tell of it, not every cluster does; so it is not asked."""
        return []

    def endpoint(self, key: PodKey, port: int) -> tuple[str, int]:
        """The pod's name within its job."""
        pod = self._found(key)
        if pod is None:
            raise UnknownPod(f"There is no pod {key.name} here")
        return pod.address, port

    @asynccontextmanager
    async def reach(self, key: PodKey, port: int) -> AsyncIterator[Line]:
        """Through the API server, which is asked by its kubelet: no network needs to lead there."""
        async with entering.reach(self._access, await self._way_into(key), port) as line:
            yield line

    @asynccontextmanager
    async def run(self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False) -> AsyncIterator[Command]:
        """Through the API server."""
        async with entering.run(self._access, await self._way_into(key), command, in_terminal=in_terminal) as running:
            yield running

    async def _way_into(self, key: PodKey) -> str:
        """The path of the pod. Raises UnknownPod."""
        pod = await asyncio.to_thread(self._found, key)
        if pod is None:
            raise UnknownPod(f"There is no pod {key.name} here")
        return pod.path

    def keep_tenants(
        self, orders: Iterable[TenantOrder], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[TenantOrder, BackendError | None]]:
        """Many at once."""
        return self._client.run_each(self._homes.keep, orders, meanwhile)

    def leave_tenants(self, kept: Collection[str]) -> None:
        """Their policies, where they share a namespace; one that is a tenant's own stays, as the tenant does."""
        if self._places.is_apart:
            return
        place, names_kept = kinds.path(path(self._places.base), kinds.POLICIES), set(map(names.tenant, kept))
        for page in self._api.pages(place, labelSelector=f"{self._ours},{names.TENANT},!{names.JOB}"):
            for one in page.get("items") or ():
                if one["metadata"]["labels"][names.TENANT] not in names_kept:
                    self._api.delete(f"{place}/{one['metadata']['name']}")

    def is_of(self, key: PodKey, tenant: str) -> bool:
        """By the namespace in which it was seen."""
        return self._places.is_of(key, tenant)

    def remove(self, job: str, *, tenant: str = "") -> None:
        """Delete the pods and what belongs to the job but the logs. Raises BackendError while a pod is there."""
        if not _SAFE.fullmatch(job):
            return
        wanted = names.selector(names.job_labels(self._cluster, job))
        left = self._listed(wanted, tenant)
        there = {pod.namespace for pod in left}
        places = there | self._namespaces(tenant)  # we are let in there first
        self._client.run_all(self._ending.keep_log, left)
        for namespace in there:
            self._api.delete(f"{path(namespace)}/pods", labelSelector=wanted, grace_seconds=1)
        for namespace in places:
            for kind in kinds.ATTACHED:
                self._delete_all(kinds.path(path(namespace), kind), wanted)
        self._starting.forget_job(job)
        self._await_end(wanted, tenant)
        self._cache.dismiss(left)

    def remove_logs(self, job: str, *, tenant: str = "") -> None:
        """Forget that the job ever was."""
        self.remove(job, tenant=tenant)
        if _SAFE.fullmatch(job):
            self._spool.remove(job)

    def inventory(self, *, fresh: bool = True) -> Inventory:
        """As the server has it at this moment; else pods as the watch told of them, which spares listing them all."""
        known = None if fresh else self._cache.there()
        pods = self._listed(self._ours) if known is None else known
        alive = frozenset(pod.key for pod in pods if pod.is_bound and not pod.observation.phase.is_final)
        kept = {pod.key.job for pod in pods}
        kinds_there = ((path(namespace), kind) for namespace in self._namespaces() for kind in kinds.ATTACHED)
        for place, kind in kinds_there:
            pages = self._api.pages(kinds.path(place, kind), labelSelector=f"{self._ours},{names.JOB}")
            kept |= {one["metadata"]["labels"][names.JOB] for page in pages for one in page.get("items") or ()}
        return Inventory(alive, frozenset(kept), frozenset(kept | self._spool.jobs()))

    def close(self) -> None:
        """End the watch. Connections may be in use by others, and go with who uses them last."""
        if adoption := vars(self).get("adoption"):
            adoption.close()
        if cache := vars(self).get("_cache"):
            cache.close()
        if client := vars(self).get("_client"):
            client.close()

    @cached_property
    def adoption(self) -> KubernetesAdoption | None:
        """The pods of others that are placed from here; None where none are to be."""
        if self._config.adopted is None or self._config.scheduler != "hekla":
            return None
        adopted, rouse = self._config.adopted, self._cache.rouse
        return KubernetesAdoption(adopted, self._cluster, self._api, self._client, self._clock, rouse)

    # The server

    @cached_property
    def _access(self) -> access.Access:
        return access.find(self._home, self._config.kubeconfig, self._key)

    @cached_property
    def _api(self) -> Api:
        return Api(self._access)

    @cached_property
    def _client(self) -> AsyncClient:
        return AsyncClient(self._access)

    @cached_property
    def _starting(self) -> Starting:
        return Starting(
            self._client,
            self._cache,
            self._manifests,
            self._finder,
            self._homes,
            Priorities(self._client, self._cluster, is_on=self._config.priority_classes),
            Ingresses(self._client, self._cluster, self._config.ingress),
            lambda order: self._spool.has(order.key),
        )

    @cached_property
    def _ending(self) -> Ending:
        return Ending(self._client, self._cache, self._manifests, self._finder, self._homes, self._spool)

    @cached_property
    def _homes(self) -> Homes:
        return Homes(self._client, self._places, self._cluster, self._config.tenant_role)

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self._places, self._cache)

    @cached_property
    def _cache(self) -> Cache:
        return Cache(self._api, self._places.pods, self._ours, self._clock, self._places.seen)

    @property
    def _place(self) -> str:
        return path(self._places.base)

    def _path_of(self, name: str) -> str:
        return f"{self._place}/pods/{name}"

    def _found(self, key: PodKey) -> Seen | None:
        """The pod as the server has it."""
        try:
            return self._cache.put(self._api.get(self._finder.pod(key)))
        except ApiError as error:
            if error.status == NOT_FOUND or (error.status == FORBIDDEN and self._has_no_home(key)):
                return None
            raise

    def _has_no_home(self, key: PodKey) -> bool:
        """Nothing of its tenant was made yet, nor were we let in there."""
        return self._places.is_apart and not self._exists(path(self._places.namespace_of(key.tenant)))

    def _exists(self, place: str) -> bool:
        try:
            return bool(self._api.get(place))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return False

    def _listed(self, selector: str, tenant: str = "") -> list[Seen]:
        """Those of this tenant; of whom is not known: of anybody."""
        pages = self._api.pages(self._places.pods, labelSelector=selector)
        found = (self._places.seen(pod) for page in pages for pod in page.get("items") or ())
        return [pod for pod in found if pod is not None and (not tenant or self._places.is_of(pod.key, tenant))]

    def _namespaces(self, tenant: str = "") -> set[str]:
        """Where things of this tenant may be; of whom is not known: of anybody. We may look into all of them."""
        if not self._places.is_apart:
            return {self._places.base}
        pages = self._api.pages("/api/v1/namespaces", labelSelector=self._ours)
        found = [one["metadata"] for page in pages for one in page.get("items") or ()]
        there = {one["name"] for one in found if "deletionTimestamp" not in one and self._places.has(one["name"])}
        wanted = there & {self._places.namespace_of(tenant)} if tenant else there
        self._client.run_all(self._homes.let_in, wanted)
        return wanted | {self._places.base}

    def _delete_all(self, place: str, selector: str) -> None:
        """One by one: services cannot be deleted by their labels."""
        for page in self._api.pages(place, labelSelector=selector):
            for one in page.get("items") or ():
                self._api.delete(f"{place}/{one['metadata']['name']}")

    def _await_end(self, selector: str, tenant: str) -> None:
        """Asked for less and less often: each question may fail, and then all of it begins anew."""
        give_up_at, pause = time.monotonic() + REMOVE_PATIENCE_SECONDS, 0.05
        while self._listed(selector, tenant):
            if time.monotonic() > give_up_at:
                raise BackendError("A pod of the job has not ended yet")
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _log(self, pod: Seen, limit: int) -> bytes:
        """Its first bytes. One that its node does not have any more is replaced by a line that says so."""
        if not pod.is_bound or pod.is_gone:
            return b""
        try:
            return self._api.text(f"{pod.path}/log", container=names.MAIN, limitBytes=limit)
        except ApiError as error:
            if error.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            return reading.no_log(error, pod)


def _nothing() -> None:
    """One start is over before it is time to look at something else."""
