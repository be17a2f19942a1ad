"""Ports of jobs that are reached from outside: for each a policy, a Service and an Ingress, once for the job.

The Ingress belongs to its Service, which goes with the job; so it goes too, and nobody needs the right to delete it.
"""

import asyncio
import logging
import time

from hekla.backends.base import PodOrder
from hekla.backends.kubernetes import kinds, names
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.config import IngressConfig
from hekla.domain.addresses import port_host

log = logging.getLogger(__name__)
_AGAIN_SECONDS = 60.0
_NETWORKING = "networking.k8s.io/v1"
Port = tuple[str, str]


class Ingresses:
    """Of one cluster. `config`: None where nothing is reached from outside."""

    def __init__(self, client: AsyncClient, cluster: str, config: IngressConfig | None) -> None:
        self._client, self._cluster, self._config = client, cluster, config
        self._done: dict[Port, float] = {}
        self._locks: dict[Port, asyncio.Lock] = {}

    async def ensure(self, order: PodOrder, place: str) -> None:
        """Those of this pod's task. What cannot be opened keeps no pod back. Raises BackendError."""
        if self._config is None:
            return
        for name, port in order.ports.items():
            this = order.key.job, name
            async with self._locks.setdefault(this, asyncio.Lock()):  # who comes while it is made waits for it
                if time.monotonic() > self._done.get(this, float("-inf")):
                    self._done[this] = await self._tried(self._config, order, name, port, place)
            self._locks.pop(this, None)

    def forget(self, job: str) -> None:
        """What was opened is gone, or was deleted."""
        self._done = {this: until for this, until in self._done.items() if this[0] != job}

    async def _tried(self, config: IngressConfig, order: PodOrder, name: str, port: int, place: str) -> float:
        """Until when it need not be tried again."""
        try:
            await self._open(config, order, name, port, place)
        except ApiError as error:
            if error.status == NOT_FOUND:  # its namespace, which is not there for the pod either
                raise
            log.warning("port %s of job %s cannot be reached from outside: %s", name, order.key.job, error)
            return time.monotonic() + _AGAIN_SECONDS
        return float("inf")

    async def _open(self, config: IngressConfig, order: PodOrder, name: str, port: int, place: str) -> None:
        """Who is let in first, then where it leads."""
        ours = names.job_labels(self._cluster, order.key.job)
        meta = {"name": names.ingress_of(order.key.job, name), "labels": ours}
        pods = {**ours, names.TASK: order.key.task}
        await self._client.create_once(kinds.path(place, kinds.POLICIES), _policy(meta, pods, ours, port, config))
        made = await self._client.create_once(f"{place}/services", _service(meta, pods, port))
        service = made or await self._found(place, str(meta["name"]))
        owner = {"apiVersion": "v1", "kind": "Service", "name": meta["name"], "uid": service["metadata"]["uid"]}
        reached = port_host(order.key.job, name, config.domain)
        ingress = _ingress({**meta, "ownerReferences": [owner]}, reached, port, config)
        await self._client.create_once(kinds.path(place, kinds.INGRESSES), ingress)

    async def _found(self, place: str, name: str) -> Json:
        """The Service; we may list them, not get one."""
        listed = await self._client.get(f"{place}/services?fieldSelector=metadata.name={name}")
        found: list[Json] = listed["items"]
        if not found:
            raise ApiError(FORBIDDEN, "", f"Somebody deleted the service {name} at this moment")
        return found[0]


def _policy(meta: Json, pods: Json, job: Json, port: int, config: IngressConfig) -> Json:
    """Lets in who leads people there, to this port alone, and pods of the job; a policy keeps out whom none lets in."""
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


def _ingress(meta: Json, reached: str, port: int, config: IngressConfig) -> Json:
    backend = {"service": {"name": meta["name"], "port": {"number": port}}}
    rule = {"host": reached, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    spec = {"ingressClassName": config.class_name, "rules": [rule]}
    tls = {"tls": [{"hosts": [reached]}]} if config.tls else {}
    return {"apiVersion": _NETWORKING, "kind": "Ingress", "metadata": meta, "spec": {**spec, **tls}}
