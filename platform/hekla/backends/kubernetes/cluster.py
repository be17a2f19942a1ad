"""What both backends of Kubernetes clusters have in common, whoever schedules their pods."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hekla.backends.base import Backend, BackendError, Inventory, LogChunk, NodeInfo, Observations, PodKey, UnknownPod
from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import entering, kinds, names, nodes, reading
from hekla.backends.kubernetes.api import BAD_REQUEST, FORBIDDEN, NOT_FOUND, ApiError
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.ending import MAX_LOG_BYTES
from hekla.backends.kubernetes.external_pods import KubernetesExternalPods
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.places import path
from hekla.backends.kubernetes.reading import Seen
from hekla.backends.streams import Command, Stream
from hekla.domain.resources import Resources

REMOVE_PATIENCE_SECONDS = 10.0
_SAFE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class KubernetesCluster(Backend):
    """Any number of processes may open the same cluster."""

    def __init__(self, config: KubernetesConfig, context: BackendContext) -> None:
        self.parts = KubernetesParts(config, context)

    @property
    def exec(self) -> "PodStreams":
        return PodStreams(self)

    @property
    def port_forwarding(self) -> "PodStreams":
        return PodStreams(self)

    @property
    def external_pods(self) -> KubernetesExternalPods | None:
        return None

    def nodes(self) -> Sequence[NodeInfo]:
        """The machines, less what the pods of others take of them."""
        running = "status.phase!=Succeeded,status.phase!=Failed"
        pages = self.parts.api.pages(
            "/api/v1/pods", labelSelector=f"{names.CLUSTER}!={self.parts.cluster}", fieldSelector=running
        )
        counted = self.external_pods.recorded if self.external_pods else frozenset()
        others = (pod for page in pages for pod in page.get("items") or () if pod["metadata"]["uid"] not in counted)
        taken = nodes.taken_by_others(others)
        wanted = names.selector(self.parts.config.node_labels)
        pages = self.parts.api.pages("/api/v1/nodes", labelSelector=wanted)
        found = [node for page in pages for node in page.get("items") or ()]
        return [nodes.info(node, taken.get(node["metadata"]["name"], Resources())) for node in found]

    def observe(self, since: str | None) -> Observations:
        """All pods as the server has them, or those that changed after the cursor."""
        told = self.parts.cache.since(since) if since else None
        pods, cursor = told or self.parts.cache.list_now()
        return Observations([pod.observation for pod in pods if pod.has_begun], cursor, complete=told is None)

    def wait(self, timeout_seconds: float) -> bool:
        """Until the server tells of a change."""
        return self.parts.cache.wait(timeout_seconds)

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """From the node as long as the pod is there, from what was kept afterwards."""
        try:
            return self.parts.spool.read(key, offset, limit)
        except FileNotFoundError:
            pod = self.find_pod(key)
        if pod is None:
            raise UnknownPod(f"There is no pod {key.name} here")
        wanted = min(max(offset, 0) + limit, MAX_LOG_BYTES)
        text = self._log(pod, wanted)
        begin = min(max(offset, 0), len(text))
        data = text[begin : begin + limit]
        is_all = len(text) < wanted or wanted == MAX_LOG_BYTES
        return LogChunk(data, begin, begin + len(data), complete=pod.observation.phase.is_final and is_all)

    def remove(self, job: str, *, tenant: str = "") -> None:
        """Delete the pods and what belongs to the job but the logs. Raises BackendError while a pod is there."""
        if not _SAFE.fullmatch(job):
            return
        wanted = names.selector(names.job_labels(self.parts.cluster, job))
        left = self.list_pods(wanted, tenant)
        there = {pod.namespace for pod in left}
        places = there | self._namespaces(tenant)  # we are let in there first
        self.parts.client.run_all(self.parts.ending.keep_log, left)
        for namespace in there:
            self.parts.api.delete(f"{path(namespace)}/pods", labelSelector=wanted, grace_seconds=1)
        for namespace in places:
            for kind in kinds.ATTACHED:
                self._delete_all(kinds.path(path(namespace), kind), wanted)
        self.parts.starting.forget_job(job)
        self._await_end(wanted, tenant)
        self.parts.cache.dismiss(left)

    def remove_logs(self, job: str, *, tenant: str = "") -> None:
        """Forget that the job ever was."""
        self.remove(job, tenant=tenant)
        if _SAFE.fullmatch(job):
            self.parts.spool.remove(job)

    def inventory(self, *, fresh: bool = True) -> Inventory:
        """As the server has it at this moment; else pods as the watch told of them, which spares listing them all."""
        known = None if fresh else self.parts.cache.there()
        pods = self.list_pods(self.parts.ours) if known is None else known
        alive = frozenset(pod.key for pod in pods if pod.is_bound and not pod.observation.phase.is_final)
        kept = {pod.key.job for pod in pods}
        kinds_there = ((path(namespace), kind) for namespace in self._namespaces() for kind in kinds.ATTACHED)
        for place, kind in kinds_there:
            pages = self.parts.api.pages(kinds.path(place, kind), labelSelector=f"{self.parts.ours},{names.JOB}")
            kept |= {one["metadata"]["labels"][names.JOB] for page in pages for one in page.get("items") or ()}
        return Inventory(alive, frozenset(kept), frozenset(kept | self.parts.spool.jobs()))

    def close(self) -> None:
        """End the watch."""
        self.parts.close()

    def find_pod(self, key: PodKey) -> Seen | None:
        """The pod as the server has it."""
        try:
            return self.parts.cache.put(self.parts.api.get(self.parts.finder.pod(key)))
        except ApiError as error:
            if error.status == NOT_FOUND or (error.status == FORBIDDEN and self._has_no_home(key)):
                return None
            raise

    def _has_no_home(self, key: PodKey) -> bool:
        """Nothing of its tenant was made yet, nor were we let in there."""
        return self.parts.places.is_apart and not self._exists(path(self.parts.places.namespace_of(key.tenant)))

    def _exists(self, place: str) -> bool:
        try:
            return bool(self.parts.api.get(place))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return False

    def list_pods(self, selector: str, tenant: str = "") -> list[Seen]:
        """Those of this tenant; of whom is not known: of anybody."""
        pages = self.parts.api.pages(self.parts.places.pods, labelSelector=selector)
        found = (self.parts.places.seen(pod) for page in pages for pod in page.get("items") or ())
        return [pod for pod in found if pod is not None and (not tenant or self.parts.places.is_of(pod.key, tenant))]

    def _namespaces(self, tenant: str = "") -> set[str]:
        """Where things of this tenant may be; of whom is not known: of anybody. We may look into all of them."""
        if not self.parts.places.is_apart:
            return {self.parts.places.base}
        pages = self.parts.api.pages("/api/v1/namespaces", labelSelector=self.parts.ours)
        found = [one["metadata"] for page in pages for one in page.get("items") or ()]
        there = {one["name"] for one in found if "deletionTimestamp" not in one and self.parts.places.has(one["name"])}
        wanted = there & {self.parts.places.namespace_of(tenant)} if tenant else there
        self.parts.client.run_all(self.parts.homes.let_in, wanted)
        return wanted | {self.parts.places.base}

    def _delete_all(self, place: str, selector: str) -> None:
        """One by one: services cannot be deleted by their labels."""
        for page in self.parts.api.pages(place, labelSelector=selector):
            for one in page.get("items") or ():
                self.parts.api.delete(f"{place}/{one['metadata']['name']}")

    def _await_end(self, selector: str, tenant: str) -> None:
        """Asked for less and less often: each question may fail, and then all of it begins anew."""
        give_up_at, pause = time.monotonic() + REMOVE_PATIENCE_SECONDS, 0.05
        while self.list_pods(selector, tenant):
            if time.monotonic() > give_up_at:
                raise BackendError("A pod of the job has not ended yet")
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _log(self, pod: Seen, limit: int) -> bytes:
        """Its first bytes. One that its node does not have any more is replaced by a line that says so."""
        if not pod.is_bound or pod.is_gone:
            return b""
        try:
            return self.parts.api.text(f"{pod.path}/log", container=names.MAIN, limitBytes=limit)
        except ApiError as error:
            if error.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            return reading.no_log(error, pod)


class PodStreams:
    """Implements `base.Exec` and `base.PortForwarding` through the API server: no network needs to lead to the pods."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    @asynccontextmanager
    async def run(self, key: PodKey, command: Sequence[str], *, in_terminal: bool = False) -> AsyncIterator[Command]:
        """By the pod's exec subresource."""
        access, pod = self._cluster.parts.access, await self._path_of(key)
        async with entering.run(access, pod, command, in_terminal=in_terminal) as running:
            yield running

    @asynccontextmanager
    async def connect(self, key: PodKey, port: int) -> AsyncIterator[Stream]:
        """By the pod's portforward subresource."""
        async with entering.reach(self._cluster.parts.access, await self._path_of(key), port) as stream:
            yield stream

    async def _path_of(self, key: PodKey) -> str:
        """Raises UnknownPod."""
        pod = await asyncio.to_thread(self._cluster.find_pod, key)
        if pod is None:
            raise UnknownPod(f"There is no pod {key.name} here")
        return pod.path
