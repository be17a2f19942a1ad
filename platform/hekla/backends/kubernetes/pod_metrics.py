"""What the pods of a cluster use, as Prometheus knows it: from the kubelets, and from NVIDIA's exporter for GPUs."""

from collections.abc import Callable, Sequence

from hekla.backends.base import PodKey, PodMetrics
from hekla.backends.kubernetes.metrics_poller import MetricsPoller
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.prometheus import PodUsage, Prometheus


class PodMetricsPoller(MetricsPoller[PodUsage]):
    """The last measurement of all pods. Implements `base.Metrics`. `pods`: those of this cluster that are known."""

    def __init__(self, source: Prometheus, pods: Callable[[], Sequence[PodState]]) -> None:
        super().__init__("pods")
        self._source, self._pods = source, pods

    def _ask(self) -> Sequence[PodUsage]:
        return self._source.measure_pods(frozenset(pod.namespace for pod in self._pods()))

    def measure(self, keys: Sequence[PodKey]) -> Sequence[PodMetrics]:
        """The last measurement of those of these pods whose CPU and memory are known."""
        found, wanted = {usage.pod: usage for usage in self.last()}, set(keys)
        mine = ((pod.key, found.get(pod.object_name)) for pod in self._pods() if pod.key in wanted)
        return [
            PodMetrics(key, usage.at, usage.cpu_seconds, usage.memory_bytes, usage.gpus_busy, None)
            for key, usage in mine
            if usage is not None
        ]
