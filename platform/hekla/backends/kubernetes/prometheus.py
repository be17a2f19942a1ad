"""Prometheus as the source of the usage of nodes, from the metrics of its node exporter.

Every answer is bounded in time and bytes. Redirects are not followed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from hekla.backends.base import BackendError, NodeMetrics
from hekla.backends.kubernetes.answer_limits import limit_answers
from hekla.backends.kubernetes.config import PrometheusConfig
from hekla.backends.kubernetes.node_metrics import Sizes
from hekla.lib.clock import Clock

_TIMEOUT = urllib3.Timeout(connect=4.0, read=10.0)
_SERVER_SECONDS = 8
_OK_BELOW = 300
_CPU = '100 * (1 - avg by ({label}) (rate(node_cpu_seconds_total{{mode="idle"}}[2m])))'
_MEMORY = "100 * (1 - avg by ({label}) (node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes))"


class Prometheus:
    """One server."""

    def __init__(self, config: PrometheusConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._pool = urllib3.PoolManager(maxsize=1)
        limit_answers(self._pool)

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]:
        """The usage of the nodes of which it knows CPU and memory."""
        cpu, memory, now = self._query(_CPU), self._query(_MEMORY), self._clock()
        known = cpu.keys() & memory.keys() & sizes.keys()
        return [NodeMetrics(name, now, cpu[name], memory[name], sizes[name]) for name in sorted(known)]

    def _query(self, text: str) -> Mapping[str, float]:
        """The values of an expression by node. Raises BackendError."""
        label = self._config.node_label
        query = urlencode({"query": text.format(label=label), "timeout": f"{_SERVER_SECONDS}s"})
        address = f"{self._config.address.rstrip('/')}/api/v1/query?{query}"
        try:
            response = self._pool.request("GET", address, timeout=_TIMEOUT, retries=False, redirect=False)
            if response.status >= _OK_BELOW:
                raise BackendError(f"Prometheus answers with {response.status}")
            return dict(_values(orjson.loads(response.data), label))
        except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise BackendError(f"Prometheus gives no answer: {type(error).__name__}: {str(error)[:200]}") from error


def _values(answer: Any, label: str) -> Iterator[tuple[str, float]]:  # noqa: ANN401  (whatever a server sends)
    for one in answer["data"]["result"]:
        name, value = str(one["metric"].get(label, "")), float(one["value"][1])
        if math.isfinite(value):
            yield name.rpartition(":")[0] or name, value
