"""The usage of simulated nodes: what the configuration says of them, and a part of the requests of running pods."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from hekla.backends.base import NodeMetrics
from hekla.backends.simulated.config import SimulatedConfig
from hekla.backends.simulated.pod_plan import PodPlan
from hekla.domain.resources import Resources

_MOST = 100.0


def usage_of_nodes(config: SimulatedConfig, running: Iterable[PodPlan], at: float) -> list[NodeMetrics]:
    """The usage of each node that has one in the configuration, with these running pods."""
    return list(_usage_of_nodes(config, running, datetime.fromtimestamp(at, tz=UTC)))


def _usage_of_nodes(config: SimulatedConfig, running: Iterable[PodPlan], at: datetime) -> Iterator[NodeMetrics]:
    cpu, memory = Counter[str](), Counter[str]()
    for plan in running:
        cpu[plan.node] += plan.cpu * config.pod_usage  # type: ignore[assignment]
        memory[plan.node] += plan.memory * config.pod_usage  # type: ignore[assignment]
    for entry in config.nodes:
        if entry.usage is None:
            continue
        base = Resources.parse(entry.usage)
        for node in entry.nodes():
            used = base + {"cpu": cpu[node.name], "memory": memory[node.name]}
            whole = node.allocatable
            yield NodeMetrics(node.name, at, _part(used, whole, "cpu"), _part(used, whole, "memory"), whole)


def _part(used: Resources, whole: Resources, name: str) -> float:
    return min(100 * used.amount(name) / whole.amount(name), _MOST) if whole.amount(name) else 0.0
