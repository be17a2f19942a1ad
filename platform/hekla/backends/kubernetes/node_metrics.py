"""What the nodes of a cluster use, as the cluster measures it: by metrics.k8s.io, or by Prometheus if configured."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from hekla.backends.base import BackendError, NodeMetrics
from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.metrics_poller import MetricsPoller
from hekla.backends.kubernetes.nodes import parse_amounts
from hekla.domain.resources import MAX_LENGTH, InvalidQuantity, Resources, parse_quantity
from hekla.lib.clock import Clock

log = logging.getLogger(__name__)
GROUP = "metrics.k8s.io"
_PATH = f"/apis/{GROUP}/v1beta1/nodes"
_NANO, _MICRO = "n", "u"

Sizes = Mapping[str, Resources]
"""The CPU and memory of nodes by name, with the parts that pods cannot request."""


class UsageSource(Protocol):
    """Who measures. `measure`: the usage of these nodes; raises BackendError."""

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]: ...


class NodeMetricsPoller(MetricsPoller[NodeMetrics]):
    """The last measurement of all nodes. Implements `base.NodeMeter`."""

    def __init__(self, source: UsageSource) -> None:
        super().__init__("nodes")
        self._source = source
        self._sizes: Sizes = {}

    def know_nodes(self, nodes: Iterable[Json]) -> None:
        """These are the nodes of the cluster; no others are measured."""
        self._sizes = {node["metadata"]["name"]: _size(node.get("status") or {}) for node in nodes}

    def measure_nodes(self) -> Sequence[NodeMetrics]:
        """The last measurement; nothing before the first, and if the cluster measures nothing."""
        return self.last()

    def _ask(self) -> Sequence[NodeMetrics]:
        return self._source.measure(self._sizes)

    def _has_subjects(self) -> bool:
        return bool(self._sizes)


class MetricsApi:
    """The API metrics.k8s.io, which the metrics server of a cluster serves."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]:
        """The NodeMetrics objects of these nodes, without those that are not valid."""
        now, found = self._clock(), list[NodeMetrics]()
        for page in self._api.pages(_PATH):
            for one in page.get("items") or ():
                if metrics := _parse(one, sizes, now):
                    found.append(metrics)
        return found


class WithFallback:
    """Another source while the first one does not answer. `fallback` raises BackendError too if it does not."""

    def __init__(self, source: UsageSource, fallback: UsageSource) -> None:
        self._source, self._fallback = source, fallback

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]:
        """The usage of these nodes, by whichever source answers."""
        try:
            return self._source.measure(sizes)
        except BackendError as error:
            log.warning("the metrics API measures the nodes meanwhile: %s", error)
            return self._fallback.measure(sizes)


def _parse(found: Json, sizes: Sizes, now: datetime) -> NodeMetrics | None:
    """The usage of a node, measured now at the latest; None if the node is unknown or the object is not valid."""
    try:
        name, usage = found["metadata"]["name"], found["usage"]
        whole = sizes.get(name)
        if whole is None:
            return None
        at = min(datetime.fromisoformat(found["timestamp"]), now)
        cpu, memory = _amount("cpu", str(usage["cpu"])), _amount("memory", str(usage["memory"]))
        return NodeMetrics(name, at, _part(cpu, whole, "cpu"), _part(memory, whole, "memory"), whole)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        log.info("a NodeMetrics object is not valid: %s", error)
        return None


def _amount(name: str, text: str) -> float:
    """An amount in internal units; the metrics server also writes billionths and millionths. Raises ValueError."""
    for suffix, per_unit in ((_NANO, 1e9), (_MICRO, 1e6)):
        if text.endswith(suffix):
            digits = text.removesuffix(suffix)
            if not digits.isdecimal() or len(digits) > MAX_LENGTH:
                raise InvalidQuantity(f"{text[:40]} is not an amount")
            return parse_quantity(name, "1") * int(digits) / per_unit
    return parse_quantity(name, text)


def _part(amount: float, whole: Resources, name: str) -> float:
    """This amount in per cent of the node's; 0 if the node has none."""
    return 100 * amount / whole.amount(name) if whole.amount(name) else 0.0


def _size(status: Json) -> Resources:
    amounts = parse_amounts(status.get("capacity") or status.get("allocatable") or {})
    return Resources({name: amounts.amount(name) for name in ("cpu", "memory")})
