"""The usage of simulated nodes: what the configuration says of them, and a part of the requests of running pods.

The requests of the running pods of each node are counted as pods start and end, so a measurement costs nothing for
pods that did not change.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from hekla.backends.base import NodeInfo, NodeMetrics, PodKey
from hekla.backends.config import Quantities
from hekla.backends.simulated.pod_plan import PodPlan
from hekla.domain.resources import Resources

_MOST = 100.0


class RequestsOfNodes:
    """The CPU and memory that the running pods of each node request."""

    def __init__(self) -> None:
        self._running: set[PodKey] = set()
        self.cpu, self.memory = defaultdict[str, float](float), defaultdict[str, float](float)

    def update(self, plan: PodPlan, *, is_running: bool) -> None:
        """The pod runs now, or no longer does."""
        if is_running == (plan.key in self._running):
            return
        sign = 1 if is_running else -1
        self.cpu[plan.node] += sign * plan.cpu
        self.memory[plan.node] += sign * plan.memory
        (self._running.add if is_running else self._running.remove)(plan.key)


class SimulatedNodeMeter:
    """Measures these nodes. Each comes with what it uses beside its pods; None: it is not measured.

    `pod_usage`: the part of its requests that a running pod uses.
    """

    def __init__(self, nodes: Iterable[tuple[NodeInfo, Quantities | None]], pod_usage: float) -> None:
        self._nodes = [(node, Resources.parse(usage)) for node, usage in nodes if usage is not None]
        self._pod_usage = pod_usage

    def __bool__(self) -> bool:
        """Whether any node is measured."""
        return bool(self._nodes)

    def measure(self, requests: RequestsOfNodes, at: float) -> list[NodeMetrics]:
        """The usage of each measured node, with these requests of its running pods."""
        instant = datetime.fromtimestamp(at, tz=UTC)
        return [self._measure(node, base, requests, instant) for node, base in self._nodes]

    def _measure(self, node: NodeInfo, base: Resources, requests: RequestsOfNodes, at: datetime) -> NodeMetrics:
        cpu = base.amount("cpu") + requests.cpu.get(node.name, 0.0) * self._pod_usage
        memory = base.amount("memory") + requests.memory.get(node.name, 0.0) * self._pod_usage
        whole = node.allocatable
        return NodeMetrics(
            node.name, at, _percent(cpu, whole.amount("cpu")), _percent(memory, whole.amount("memory")), whole
        )


def _percent(used: float, whole: float) -> float:
    return min(100 * used / whole, _MOST) if whole else 0.0
