"""The common base of the Kubernetes backends, for pods scheduled by Hekla or by Volcano."""

import re
import time
from collections.abc import Mapping, Sequence

from hekla.backends.base import Backend, BackendError, Inventory, NodeInfo, Observations, PodKey, UnknownPod
from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import names, nodes, pod_state
from hekla.backends.kubernetes.api import BAD_REQUEST, FORBIDDEN, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.external_pods import KubernetesExternalPods
from hekla.backends.kubernetes.files import KubernetesFiles
from hekla.backends.kubernetes.hypernode_members import Levels
from hekla.backends.kubernetes.layout import namespace_path
from hekla.backends.kubernetes.node_metrics import NodeMetricsPoller
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.pod_deletion import MAX_LOG_BYTES
from hekla.backends.kubernetes.pod_metrics import PodMetricsPoller
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.pod_streams import PodStreams
from hekla.backends.kubernetes.resource_paths import ATTACHED, resource_path
from hekla.backends.kubernetes.tenancy import KubernetesTenancy
from hekla.backends.kubernetes.uploads import KubernetesUploads
from hekla.backends.log_chunk import LogChunk
from hekla.domain.numa import NumaTopology
from hekla.domain.resources import Resources
from hekla.lib.once_property import once_property

REMOVE_PATIENCE_SECONDS = 10.0
_SAFE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class KubernetesCluster(Backend):
    """A Kubernetes cluster. Any number of processes may open the same one."""

    def __init__(self, config: KubernetesConfig, context: BackendContext) -> None:
        self.parts = KubernetesParts(config, context)

    @property
    def exec(self) -> PodStreams:
        return PodStreams(self.parts, self.find_pod)

    @property
    def files(self) -> KubernetesFiles:
        return KubernetesFiles(self.exec)

    @property
    def uploads(self) -> KubernetesUploads:
        return KubernetesUploads(self.exec)

    @property
    def port_forwarding(self) -> PodStreams:
        return PodStreams(self.parts, self.find_pod)

    def console_url(self, public: str) -> str:
        """As its configuration says. Without that, no policy lets pods connect to the console."""
        console = self.parts.config.console
        return (console.url or public).rstrip("/") if console is not None else ""

    @once_property
    def tenancy(self) -> KubernetesTenancy:
        return KubernetesTenancy(self.parts)

    @property
    def node_meter(self) -> NodeMetricsPoller:
        return self.parts.node_metrics

    @property
    def metrics(self) -> PodMetricsPoller | None:
        return self.parts.pod_metrics

    @property
    def external_pods(self) -> KubernetesExternalPods | None:
        return None

    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes; their allocatable resources exclude the requests of other pods."""
        running = "status.phase!=Succeeded,status.phase!=Failed"
        pages = self.parts.api.pages(
            "/api/v1/pods", labelSelector=f"{names.CLUSTER}!={self.parts.cluster}", fieldSelector=running
        )
        recorded = self.external_pods.recorded if self.external_pods else frozenset()
        others = (pod for page in pages for pod in page.get("items") or () if pod["metadata"]["uid"] not in recorded)
        requested = nodes.requests_of_other_pods(others)
        selector = names.selector(self.parts.config.node_labels)
        pages = self.parts.api.pages("/api/v1/nodes", labelSelector=selector)
        found = {node["metadata"]["name"]: node for page in pages for node in page.get("items") or ()}
        self.parts.node_metrics.know_nodes(found.values())
        levels, cells = self._levels(found), self._cells()
        return [
            nodes.node_info(node, requested.get(name, Resources()), levels.get(name, ()), cells.get(name))
            for name, node in found.items()
        ]

    def _levels(self, found: Mapping[str, Json]) -> Levels:
        """The hypernodes that hold each of these nodes; none if labels of nodes define them, or Volcano schedules."""
        if not self.parts.config.uses_hypernode_objects:
            return {}
        return self.parts.hypernodes.of_nodes(
            {name: node["metadata"].get("labels") or {} for name, node in found.items()}
        )

    def _cells(self) -> Mapping[str, NumaTopology]:
        """The NUMA cells of nodes; none if Volcano schedules."""
        return self.parts.numa_topologies.of_nodes() if self.parts.config.scheduler == "hekla" else {}

    def observe(self, since: str | None) -> Observations:
        """All pods from the server, or those that changed after the cursor."""
        changed = self.parts.cache.since(since) if since else None
        pods, cursor = changed or self.parts.cache.list_now()
        return Observations([pod.observation for pod in pods if pod.is_started], cursor, complete=changed is None)

    def wait(self, timeout_seconds: float) -> bool:
        """Block until the server reports a change."""
        return self.parts.cache.wait(timeout_seconds)

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """From the spool if the log is saved there, else from the pod's node."""
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
        """Delete the pods and all objects of the job. Raises BackendError while a pod exists."""
        if not _SAFE.fullmatch(job):
            return
        selector = names.selector(names.job_labels(self.parts.cluster, job))
        pods = self.list_pods(selector, tenant)
        with_pods = {pod.namespace for pod in pods}
        namespaces = with_pods | self._namespaces(tenant)  # grants us access there
        self.parts.client.run_all(self.parts.pod_deletion.save_log, pods)
        for namespace in with_pods:
            self.parts.api.delete(f"{namespace_path(namespace)}/pods", labelSelector=selector, grace_seconds=1)
        for namespace in namespaces:
            for kind in ATTACHED:
                self._delete_all(resource_path(namespace_path(namespace), kind), selector)
        self.parts.pod_creation.forget_job(job)
        self._await_end(selector, tenant)
        self.parts.cache.dismiss(pods)

    def remove_logs(self, job: str, *, tenant: str = "") -> None:
        """Remove the job and its spooled logs."""
        self.remove(job, tenant=tenant)
        if _SAFE.fullmatch(job):
            self.parts.spool.remove(job)

    def inventory(self, *, fresh: bool = True) -> Inventory:
        """From the server as of now. Not `fresh`: pods from the watch, to save listing all of them."""
        known = None if fresh else self.parts.cache.list_present()
        pods = self.list_pods(self.parts.ours) if known is None else known
        alive = frozenset(pod.key for pod in pods if pod.is_bound and not pod.observation.phase.is_final)
        present = {pod.key.job for pod in pods}
        namespaces = map(namespace_path, self._namespaces())
        for path in (resource_path(namespace, kind) for namespace in namespaces for kind in ATTACHED):
            pages = self.parts.api.pages(path, labelSelector=f"{self.parts.ours},{names.JOB}")
            present |= {one["metadata"]["labels"][names.JOB] for page in pages for one in page.get("items") or ()}
        return Inventory(alive, frozenset(present), frozenset(present | self.parts.spool.jobs()))

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        return self.parts.fault

    def close(self) -> None:
        """End the watch."""
        self.parts.close()

    def find_pod(self, key: PodKey) -> PodState | None:
        """The present pod from the server."""
        try:
            return self.parts.cache.put(self.parts.api.get(self.parts.locator.pod_path(key)))
        except ApiError as error:
            if error.status == NOT_FOUND or (error.status == FORBIDDEN and self._has_no_namespace(key)):
                return None
            raise

    def _has_no_namespace(self, key: PodKey) -> bool:
        """Its tenant's own namespace was not created yet, so we have no access to it either."""
        layout = self.parts.layout
        return layout.per_tenant and not self._exists(namespace_path(layout.namespace_of(key.tenant)))

    def _exists(self, path: str) -> bool:
        try:
            return bool(self.parts.api.get(path))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return False

    def list_pods(self, selector: str, tenant: str = "") -> list[PodState]:
        """Our pods with these labels; of all tenants if none is given."""
        layout = self.parts.layout
        pages = self.parts.api.pages(layout.pods_path, labelSelector=selector)
        found = (layout.parse_pod(pod) for page in pages for pod in page.get("items") or ())
        return [pod for pod in found if pod is not None and (not tenant or layout.owns(tenant, pod.key))]

    def _namespaces(self, tenant: str = "") -> set[str]:
        """The namespaces that may contain objects of this tenant, or of any. Grants us access to all of them."""
        layout = self.parts.layout
        if not layout.per_tenant:
            return {layout.base}
        pages = self.parts.api.pages("/api/v1/namespaces", labelSelector=self.parts.ours)
        found = [one["metadata"] for page in pages for one in page.get("items") or ()]
        there = {one["name"] for one in found if "deletionTimestamp" not in one and layout.may_contain(one["name"])}
        wanted = there & {layout.namespace_of(tenant)} if tenant else there
        self.parts.client.run_all(self.parts.tenant_namespaces.grant_access, wanted)
        return wanted | {layout.base}

    def _delete_all(self, path: str, selector: str) -> None:
        """Delete one object at a time: services cannot be deleted by their labels."""
        for page in self.parts.api.pages(path, labelSelector=selector):
            for one in page.get("items") or ():
                self.parts.api.delete(f"{path}/{one['metadata']['name']}")

    def _await_end(self, selector: str, tenant: str) -> None:
        """Poll with growing pauses until no pod remains: a failed poll restarts the whole removal."""
        give_up_at, pause = time.monotonic() + REMOVE_PATIENCE_SECONDS, 0.05
        while self.list_pods(selector, tenant):
            if time.monotonic() > give_up_at:
                raise BackendError("A pod of the job has not ended yet")
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _log(self, pod: PodState, limit: int) -> bytes:
        """The first `limit` bytes of the log. If the node no longer has it, a line says so."""
        if not pod.is_bound or pod.is_deleted:
            return b""
        try:
            return self.parts.api.text(f"{pod.path}/log", container=names.MAIN, limitBytes=limit)
        except ApiError as error:
            if error.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            return pod_state.missing_log(error, pod)
