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
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
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
from hekla.backends.kubernetes.api import BAD_REQUEST, NOT_FOUND, Api, ApiError
from hekla.backends.kubernetes.budgets import Budgets
from hekla.backends.kubernetes.cache import Cache
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.ending import MAX_LOG_BYTES, Ending
from hekla.backends.kubernetes.flight import Flight
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.reading import Seen
from hekla.backends.kubernetes.spool import Spool
from hekla.backends.kubernetes.starting import Starting
from hekla.backends.lines import Command, Line
from hekla.domain.replicas import Replica
from hekla.domain.resources import Resources
from hekla.lib.clock import Clock

log = logging.getLogger(__name__)
REMOVE_PATIENCE_SECONDS = 10.0
FORGET_PATIENCE_SECONDS = 2.0
_SAFE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class KubernetesBackend:
    """Implements `base.Backend`. Any number of processes may open the same cluster."""

    capabilities = Capabilities(simulated=False, enforces_limits=True, has_endpoints=True, runs_commands=True)

    def __init__(
        self, *, cluster: str, config: Mapping[str, Any], home: Path, clock: Clock, key: str | None = None
    ) -> None:
        self._config = configuration.read(KubernetesConfig, config)
        self._cluster, self._home, self._clock, self._key = cluster, home, clock, key
        self._spool = Spool(home / "kubernetes" / cluster / "logs")
        self._manifests = Manifests(cluster, self._config)
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
        self._flight.all(self._starting.start, [order])

    def start_many(
        self, orders: Iterable[PodOrder], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Many at once: it is the server that takes the time."""
        return self._flight.each(self._starting.start, orders, meanwhile)

    def stop(self, key: PodKey, *, reason: str) -> None:
        """Its deadline is now. One that was not made yet is made as one that is never bound."""
        self._flight.all(self._ending.stop, [(key, reason)])

    def stop_many(
        self, wishes: Iterable[tuple[PodKey, str]], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Many at once."""
        return self._flight.each(self._ending.stop, wishes, meanwhile)

    def kept(self, keys: Sequence[PodKey], *, meanwhile: Callable[[], None]) -> Mapping[PodKey, str]:
        """As the server says of each at this moment."""
        return Budgets(self._flight, self._cache, self._path_of).kept(keys, meanwhile)

    def observe(self, since: str | None) -> Observations:
        """All pods as the server has them, or those that changed after the cursor."""
        told = self._cache.since(since) if since else None
        pods, cursor = told or self._cache.list_now()
        return Observations([pod.observation for pod in pods if pod.has_begun], cursor, complete=told is None)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Keep their logs, and delete them. What cannot be done now, or soon, is left: `observe` tells of it again."""
        give_up_at = time.monotonic() + FORGET_PATIENCE_SECONDS
        soon = itertools.takewhile(lambda _key: time.monotonic() < give_up_at, keys)
        for key, error in self._flight.each(self._ending.forget, soon, _nothing):
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
        return self._path_of(pod.name)

    def remove(self, job: str) -> None:
        """Delete the pods and what belongs to the job but the logs. Raises BackendError while a pod is there."""
        if not _SAFE.fullmatch(job):
            return
        wanted = names.selector(names.job_labels(self._cluster, job))
        left = self._listed(wanted)
        self._flight.all(self._ending.keep_log, left)
        if left:
            self._api.delete(f"{self._place}/pods", labelSelector=wanted, grace_seconds=1)
        for kind in kinds.ATTACHED:
            self._delete_all(kind, wanted)
        self._starting.forget_service(job)
        self._await_end(wanted)
        self._cache.dismiss(left)

    def remove_logs(self, job: str) -> None:
        """Forget that the job ever was."""
        self.remove(job)
        if _SAFE.fullmatch(job):
            self._spool.remove(job)

    def inventory(self) -> Inventory:
        """As the server has it at this moment."""
        pods = self._listed(self._ours)
        alive = frozenset(pod.key for pod in pods if pod.is_bound and not pod.observation.phase.is_final)
        kept = {pod.key.job for pod in pods}
        for kind in kinds.ATTACHED:
            pages = self._api.pages(kinds.path(self._place, kind), labelSelector=self._ours)
            kept |= {one["metadata"]["labels"][names.JOB] for page in pages for one in page.get("items") or ()}
        return Inventory(alive, frozenset(kept), frozenset(kept | self._spool.jobs()))

    def close(self) -> None:
        """End the watch. Connections may be in use by others, and go with who uses them last."""
        if adoption := vars(self).get("adoption"):
            adoption.close()
        if cache := vars(self).get("_cache"):
            cache.close()
        if flight := vars(self).get("_flight"):
            flight.close()

    @cached_property
    def adoption(self) -> KubernetesAdoption | None:
        """The pods of others that are placed from here; None where none are to be."""
        if self._config.adopted is None or self._config.scheduler != "hekla":
            return None
        return KubernetesAdoption(self._config.adopted, self._api, self._flight, self._clock, self._cache.rouse)

    # The server

    @cached_property
    def _access(self) -> access.Access:
        return access.find(self._home, self._config.kubeconfig, self._key)

    @cached_property
    def _api(self) -> Api:
        return Api(self._access)

    @cached_property
    def _flight(self) -> Flight:
        return Flight(self._access)

    @cached_property
    def _starting(self) -> Starting:
        return Starting(self._flight, self._cache, self._manifests, self._place, lambda o: self._spool.has(o.key))

    @cached_property
    def _ending(self) -> Ending:
        return Ending(self._flight, self._cache, self._manifests, self._place, self._spool)

    @cached_property
    def _cache(self) -> Cache:
        return Cache(self._api, f"{self._place}/pods", self._ours, self._clock)

    @property
    def _place(self) -> str:
        return f"/api/v1/namespaces/{self._config.namespace}"

    def _path_of(self, name: str) -> str:
        return f"{self._place}/pods/{name}"

    def _found(self, key: PodKey) -> Seen | None:
        """The pod as the server has it."""
        return self._looked_up(key.name)

    def _looked_up(self, name: str) -> Seen | None:
        try:
            return self._cache.put(self._api.get(self._path_of(name)))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def _listed(self, selector: str) -> list[Seen]:
        pages = self._api.pages(f"{self._place}/pods", labelSelector=selector)
        found = (reading.seen(pod) for page in pages for pod in page.get("items") or ())
        return [pod for pod in found if pod is not None]

    def _delete_all(self, kind: str, selector: str) -> None:
        """One by one: services cannot be deleted by their labels."""
        place = kinds.path(self._place, kind)
        for page in self._api.pages(place, labelSelector=selector):
            for one in page.get("items") or ():
                self._api.delete(f"{place}/{one['metadata']['name']}")

    def _await_end(self, selector: str) -> None:
        """Asked for less and less often: each question may fail, and then all of it begins anew."""
        give_up_at, pause = time.monotonic() + REMOVE_PATIENCE_SECONDS, 0.05
        while self._listed(selector):
            if time.monotonic() > give_up_at:
                raise BackendError("A pod of the job has not ended yet")
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _log(self, pod: Seen, limit: int) -> bytes:
        """Its first bytes. One that its node does not have any more is replaced by a line that says so."""
        if not pod.is_bound or pod.is_gone:
            return b""
        try:
            return self._api.text(f"{self._path_of(pod.name)}/log", container=names.MAIN, limitBytes=limit)
        except ApiError as error:
            if error.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            return reading.no_log(error, pod)


def _nothing() -> None:
    """One start is over before it is time to look at something else."""
