"""Prometheus as the source of the usage of nodes, from the metrics of its node exporter, and of pods, from those of the
kubelets (cAdvisor) and of NVIDIA's exporter.

Every answer is bounded in time and bytes. Redirects are not followed. Whatever its name resolves to, a connection to a
metadata service or an address of the link is closed before anything is sent.
"""

import ipaddress
import math
import socket
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from hekla.backends.base import BackendError, NodeMetrics
from hekla.backends.kubernetes.answer_limits import limit_answers, unpack
from hekla.backends.kubernetes.config import METADATA, PrometheusConfig
from hekla.backends.kubernetes.node_metrics import Sizes
from hekla.backends.kubernetes.pod_state import ObjectName
from hekla.domain.cards import MAX_CARDS
from hekla.domain.node_usage import CardMetrics
from hekla.lib.clock import Clock

_TIMEOUT = urllib3.Timeout(connect=4.0, read=10.0)
_SERVER_SECONDS = 8
_OK_BELOW = 300
_CPU = '100 * (1 - avg by ({label}) (rate(node_cpu_seconds_total{{mode="idle"}}[2m])))'
_OF_CONTAINERS = 'sum by (namespace, pod) ({metric}{{container!="",container!="POD"}})'
_POD_CPU = _OF_CONTAINERS.format(metric="container_cpu_usage_seconds_total")
_POD_MEMORY = _OF_CONTAINERS.format(metric="container_memory_working_set_bytes")
_POD_GPUS = (
    'sum by (namespace, pod) (label_replace(label_replace(DCGM_FI_DEV_GPU_UTIL{exported_pod!=""}, '
    '"pod", "$1", "exported_pod", "(.+)"), "namespace", "$1", "exported_namespace", "(.+)") '
    'or DCGM_FI_DEV_GPU_UTIL{exported_pod="",pod!=""}) / 100'
)
"""Unless Prometheus honours the exporter's labels, `pod` is the exporter, and `exported_pod` the user of the GPU."""
_GPU, _LONGEST_NUMBER = "nvidia.com/gpu", 4
_CARDS_BUSY = "max by ({label}, gpu) (DCGM_FI_DEV_GPU_UTIL)"
_CARDS_MEMORY = "max by ({label}, gpu) (DCGM_FI_DEV_FB_USED)"
_CLOSED = tuple(ipaddress.ip_network(one) for one in METADATA)
_MEMORY = "100 * (1 - avg by ({label}) (node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes))"


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What a pod has used up to an instant. `pod`: its namespace and name. `gpus_busy`: how many GPUs it keeps busy."""

    pod: ObjectName
    at: datetime
    cpu_seconds: float
    memory_bytes: int
    gpus_busy: float | None


class Prometheus:
    """One server."""

    def __init__(self, config: PrometheusConfig, clock: Clock, token: str = "") -> None:
        self._config, self._clock = config, clock
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(maxsize=1)
        limit_answers(self._pool)
        schemes = self._pool.pool_classes_by_scheme
        self._pool.pool_classes_by_scheme = {scheme: _guarded(pool) for scheme, pool in schemes.items()}

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]:
        """The usage of the nodes of which it knows CPU and memory, with that of their NVIDIA cards if it knows it."""
        cpu, memory, now = self._of_nodes(_CPU), self._of_nodes(_MEMORY), self._clock()
        cards, known = self._cards(), cpu.keys() & memory.keys() & sizes.keys()
        return [
            NodeMetrics(name, now, cpu[name], memory[name], sizes[name], cards.get(name, ())) for name in sorted(known)
        ]

    def require_answer(self) -> None:
        """Raises BackendError if it does not answer a query now."""
        self._query("vector(1)")

    def _cards(self) -> Mapping[str, Sequence[CardMetrics]]:
        """The usage of the NVIDIA cards by node, some at most of each."""
        memory = dict(self._of_cards(_CARDS_MEMORY))
        found: defaultdict[str, list[CardMetrics]] = defaultdict(list)
        for (node, index), busy in sorted(self._of_cards(_CARDS_BUSY)):
            if len(found[node]) < MAX_CARDS:
                found[node].append(CardMetrics(_GPU, index, busy, int(memory.get((node, index), 0))))
        return found

    def _of_cards(self, text: str) -> Iterator[tuple[tuple[str, int], float]]:
        """The values of an expression by node and number of the card. Raises BackendError."""
        label = self._config.gpu_node_label
        for labels, value in self._query(text.format(label=label)):
            number = str(labels.get("gpu", ""))
            if number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER and value >= 0:
                yield (_name_of(labels, label), int(number)), value

    def measure_pods(self, namespaces: Collection[str]) -> Sequence[PodUsage]:
        """The usage of the pods in these namespaces of which it knows CPU and memory."""
        if not namespaces:
            return []
        cpu, memory, gpus = (self._of_pods(query, namespaces) for query in (_POD_CPU, _POD_MEMORY, _POD_GPUS))
        now = self._clock()
        return [PodUsage(pod, now, cpu[pod], int(memory[pod]), gpus.get(pod)) for pod in cpu if pod in memory]

    def _of_nodes(self, text: str) -> Mapping[str, float]:
        """The values of an expression by node. Raises BackendError."""
        label = self._config.node_label
        return {_name_of(labels, label): value for labels, value in self._query(text.format(label=label))}

    def _of_pods(self, text: str, namespaces: Collection[str]) -> Mapping[ObjectName, float]:
        """The values of an expression by pod. Raises BackendError."""
        found = ((_pod_of(metric), value) for metric, value in self._query(text))
        return {pod: value for pod, value in found if pod[0] in namespaces and value >= 0}

    def _query(self, text: str) -> list[tuple[Mapping[str, Any], float]]:
        """The labels and values of an expression. Raises BackendError."""
        query = urlencode({"query": text, "timeout": f"{_SERVER_SECONDS}s"})
        address = f"{self._config.address.rstrip('/')}/api/v1/query?{query}"
        try:
            response = self._pool.request(
                "GET",
                address,
                headers=self._headers,
                timeout=_TIMEOUT,
                retries=False,
                redirect=False,
                decode_content=False,
            )
            if response.status >= _OK_BELOW:
                raise BackendError(f"Prometheus answers with {response.status}")
            return list(_values(orjson.loads(unpack(response))))
        except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise BackendError(f"Prometheus gives no answer: {type(error).__name__}: {str(error)[:200]}") from error


def _values(answer: Any) -> Iterator[tuple[Mapping[str, Any], float]]:  # noqa: ANN401  (whatever a server sends)
    for one in answer["data"]["result"]:
        labels, value = dict(one["metric"].items()), float(one["value"][1])
        if math.isfinite(value):
            yield labels, value


def _pod_of(labels: Mapping[str, Any]) -> ObjectName:
    return str(labels.get("namespace", "")), str(labels.get("pod", ""))


def _name_of(labels: Mapping[str, Any], label: str) -> str:
    """The name of a node in this label, without a port."""
    name = str(labels.get(label, ""))
    return name.rpartition(":")[0] or name


@lru_cache
def _guarded(pool: Any) -> Any:  # noqa: ANN401  (a class of connections that is only known now)
    """These connections, which refuse metadata services: names can resolve to other addresses at any time."""

    class GuardedConnection(pool.ConnectionCls):  # type: ignore[misc]
        """A connection whose peer is checked before it is used, also before TLS."""

        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()
            peer = ipaddress.ip_address(str(made.getpeername()[0]).partition("%")[0])
            peer = getattr(peer, "ipv4_mapped", None) or peer
            if any(peer in network for network in _CLOSED):
                made.close()
                raise OSError("Metadata services and addresses of the link are not used.")
            return made

    return type("GuardedPool", (pool,), {"ConnectionCls": GuardedConnection})
