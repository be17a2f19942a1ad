"""Exposed ports of jobs: for each port of a job, a network policy, a Service and an Ingress.

The Service owns the Ingress and is deleted with the job, so we need no permission to delete Ingresses.
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
    """The Ingresses of one cluster. `config`: None if no ports are exposed."""

    def __init__(self, client: AsyncClient, cluster: str, config: IngressConfig | None) -> None:
        self._client, self._cluster, self._config = client, cluster, config
        self._done: dict[Port, float] = {}
        self._locks: dict[Port, asyncio.Lock] = {}

    async def ensure(self, order: PodOrder, namespace: str) -> None:
        """Create the objects for the ports of this pod's task. A refusal by the server does not delay the pod.

        Raises BackendError if the server does not answer or the namespace is missing.
        """
        if self._config is None:
            return
        for name, port in order.ports.items():
            port_key = order.key.job, name
            async with self._locks.setdefault(port_key, asyncio.Lock()):  # others wait until it is created
                if time.monotonic() > self._done.get(port_key, float("-inf")):
                    self._done[port_key] = await self._try_to_create(self._config, order, name, port, namespace)
            self._locks.pop(port_key, None)

    def forget(self, job: str) -> None:
        """Forget the job's objects, because they were deleted."""
        self._done = {port: until for port, until in self._done.items() if port[0] != job}

    async def _try_to_create(
        self, config: IngressConfig, order: PodOrder, name: str, port: int, namespace: str
    ) -> float:
        """Create the objects. Returns the time until which not to try again, on the monotonic clock."""
        try:
            await self._create(config, order, name, port, namespace)
        except ApiError as error:
            if error.status == NOT_FOUND:  # the namespace is missing, for the pod too
                raise
            log.warning("port %s of job %s cannot be reached from outside: %s", name, order.key.job, error)
            return time.monotonic() + _RETRY_SECONDS
        return float("inf")

    async def _create(self, config: IngressConfig, order: PodOrder, name: str, port: int, namespace: str) -> None:
        """Create the policy first, then the Service and its Ingress."""
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
        """The Service, by a list: we have no permission to get a single one."""
        listed = await self._client.get(f"{namespace}/services?fieldSelector=metadata.name={name}")
        found: list[Json] = listed["items"]
        if not found:
            raise ApiError(FORBIDDEN, "", f"The service {name} was deleted meanwhile")
        return found[0]


def _policy(meta: Json, pods: Json, job: Json, port: int, config: IngressConfig) -> Json:
    """A policy that admits the proxy, to this port only, and pods of the job. It blocks all others."""
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
