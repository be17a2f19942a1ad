"""Ports of jobs that are reached from outside: for each a network policy, a Service and an Ingress, once per job.

The Ingress is owned by its Service, which is deleted with the job; so we need no permission to delete it.
"""

import asyncio
import logging
import time

from hekla.backends.base import PodOrder
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.config import IngressConfig
from hekla.backends.kubernetes.resource_paths import INGRESSES, POLICIES, resource_path
from hekla.domain.addresses import port_host

log = logging.getLogger(__name__)
_RETRY_SECONDS = 60.0
_NETWORKING = "networking.k8s.io/v1"
Port = tuple[str, str]


class Ingresses:
    """Of one cluster. `config`: None if nothing is reached from outside."""

    def __init__(self, client: AsyncClient, cluster: str, config: IngressConfig | None) -> None:
        self._client, self._cluster, self._config = client, cluster, config
        self._done: dict[Port, float] = {}
        self._locks: dict[Port, asyncio.Lock] = {}

    async def ensure(self, order: PodOrder, namespace: str) -> None:
        """Create those of this pod's task. A failure does not delay the pod. Raises BackendError."""
        if self._config is None:
            return
        for name, port in order.ports.items():
            port_key = order.key.job, name
            async with self._locks.setdefault(port_key, asyncio.Lock()):  # others wait until it is created
                if time.monotonic() > self._done.get(port_key, float("-inf")):
                    self._done[port_key] = await self._try_to_create(self._config, order, name, port, namespace)
            self._locks.pop(port_key, None)

    def forget(self, job: str) -> None:
        """The job's objects were deleted."""
        self._done = {port: until for port, until in self._done.items() if port[0] != job}

    async def _try_to_create(
        self, config: IngressConfig, order: PodOrder, name: str, port: int, namespace: str
    ) -> float:
        """Until when not to try again."""
        try:
            await self._create(config, order, name, port, namespace)
        except ApiError as error:
            if error.status == NOT_FOUND:  # its namespace, which is not there for the pod either
                raise
            log.warning("port %s of job %s cannot be reached from outside: %s", name, order.key.job, error)
            return time.monotonic() + _RETRY_SECONDS
        return float("inf")

    async def _create(self, config: IngressConfig, order: PodOrder, name: str, port: int, namespace: str) -> None:
        """The policy first, then the Service and its Ingress."""
        labels = names.job_labels(self._cluster, order.key.job)
        meta = {"name": names.ingress_of(order.key.job, name), "labels": labels}
        pods = {**labels, names.TASK: order.key.task}
        await self._client.create_once(resource_path(namespace, POLICIES), _policy(meta, pods, labels, port, config))
        made = await self._client.create_once(f"{namespace}/services", _service(meta, pods, port))
        service = made or await self._find_service(namespace, str(meta["name"]))
        owner = {"apiVersion": "v1", "kind": "Service", "name": meta["name"], "uid": service["metadata"]["uid"]}
        host_name = port_host(order.key.job, name, config.domain)
        ingress = _ingress({**meta, "ownerReferences": [owner]}, host_name, port, config)
        await self._client.create_once(resource_path(namespace, INGRESSES), ingress)

    async def _find_service(self, namespace: str, name: str) -> Json:
        """By a list: we have no permission to get one."""
        listed = await self._client.get(f"{namespace}/services?fieldSelector=metadata.name={name}")
        found: list[Json] = listed["items"]
        if not found:
            raise ApiError(FORBIDDEN, "", f"Somebody deleted the service {name} at this moment")
        return found[0]


def _policy(meta: Json, pods: Json, job: Json, port: int, config: IngressConfig) -> Json:
    """Admits the ingress controller, to this port only, and pods of the job; policies block what none admits."""
    proxy = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": config.namespace}}}
    return {
        "apiVersion": _NETWORKING,
        "kind": "NetworkPolicy",
        "metadata": meta,
        "spec": {
            "podSelector": {"matchLabels": pods},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [proxy], "ports": [{"protocol": "TCP", "port": port}]},
                {"from": [{"podSelector": {"matchLabels": job}}]},
            ],
        },
    }


def _service(meta: Json, pods: Json, port: int) -> Json:
    spec = {"selector": pods, "ports": [{"protocol": "TCP", "port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _ingress(meta: Json, host_name: str, port: int, config: IngressConfig) -> Json:
    backend = {"service": {"name": meta["name"], "port": {"number": port}}}
    rule = {"host": host_name, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    spec = {"ingressClassName": config.class_name, "rules": [rule]}
    tls = {"tls": [{"hosts": [host_name]}]} if config.tls else {}
    return {"apiVersion": _NETWORKING, "kind": "Ingress", "metadata": meta, "spec": {**spec, **tls}}
