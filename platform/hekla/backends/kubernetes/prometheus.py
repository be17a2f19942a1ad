"""Prometheus as the source of the usage of nodes, from the metrics of its node exporter, and of pods, from those of the
kubelets (cAdvisor) and of NVIDIA's exporter.

Every answer is bounded in time and bytes. Redirects are not followed.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from hekla.backends.base import BackendError, NodeMetrics
from hekla.backends.kubernetes.answer_limits import limit_answers
from hekla.backends.kubernetes.config import PrometheusConfig
from hekla.backends.kubernetes.node_metrics import Sizes
from hekla.backends.kubernetes.pod_state import ObjectName
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

    def __init__(self, config: PrometheusConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._pool = urllib3.PoolManager(maxsize=1)
        limit_answers(self._pool)

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]:
        """The usage of the nodes of which it knows CPU and memory."""
        cpu, memory, now = self._of_nodes(_CPU), self._of_nodes(_MEMORY), self._clock()
        known = cpu.keys() & memory.keys() & sizes.keys()
        return [NodeMetrics(name, now, cpu[name], memory[name], sizes[name]) for name in sorted(known)]

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
        found = ((str(metric.get(label, "")), value) for metric, value in self._query(text.format(label=label)))
        return {name.rpartition(":")[0] or name: value for name, value in found}

    def _of_pods(self, text: str, namespaces: Collection[str]) -> Mapping[ObjectName, float]:
        """The values of an expression by pod. Raises BackendError."""
        found = ((_pod_of(metric), value) for metric, value in self._query(text))
        return {pod: value for pod, value in found if pod[0] in namespaces and value >= 0}

    def _query(self, text: str) -> list[tuple[Mapping[str, Any], float]]:
        """The labels and values of an expression. Raises BackendError."""
        query = urlencode({"query": text, "timeout": f"{_SERVER_SECONDS}s"})
        address = f"{self._config.address.rstrip('/')}/api/v1/query?{query}"
        try:
            response = self._pool.request("GET", address, timeout=_TIMEOUT, retries=False, redirect=False)
            if response.status >= _OK_BELOW:
                raise BackendError(f"Prometheus answers with {response.status}")
            return list(_values(orjson.loads(response.data)))
        except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise BackendError(f"Prometheus gives no answer: {type(error).__name__}: {str(error)[:200]}") from error


def _values(answer: Any) -> Iterator[tuple[Mapping[str, Any], float]]:  # noqa: ANN401  (whatever a server sends)
    for one in answer["data"]["result"]:
        labels, value = dict(one["metric"].items()), float(one["value"][1])
        if math.isfinite(value):
            yield labels, value


def _pod_of(labels: Mapping[str, Any]) -> ObjectName:
    return str(labels.get("namespace", "")), str(labels.get("pod", ""))
