"""The external pods of one namespace, cached by watching the server: all of them as of one version.

The ends of pods that were deleted since are reported for a while: the caller may not have read in between.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.external_pod_state import parse_external_pod
from hekla.backends.kubernetes.reflector import Reflector
from hekla.domain.external_pods import ExternalPod
from hekla.domain.phases import PodPhase

_ENDS_REPORTED_SECONDS = 600.0
_MAX_ENDS = 10_000


class ExternalPodCache:
    """Watches the server from the first read on. Implements `ReflectorStore`.

    `wake` is called when something changed.
    """

    def __init__(self, api: Api, namespace: str, scheduler_name: str, wake: Callable[[], None]) -> None:
        query = {"labelSelector": f"!{names.CLUSTER}", "fieldSelector": f"spec.schedulerName={scheduler_name}"}
        self._wake = wake
        self._lock = threading.Condition()
        self._pods: dict[str, ExternalPod] = {}
        self._ended: set[str] = set()
        self._ends: deque[tuple[float, ExternalPod]] = deque(maxlen=_MAX_ENDS)
        self._reflector = Reflector(api, f"/api/v1/namespaces/{namespace}/pods", query, self, self._lock)

    def all(self, *, fresh: bool) -> Sequence[ExternalPod]:
        """All present pods, and those that ended before they were deleted lately. `fresh`: as of this moment.

        Raises BackendError.
        """
        if fresh or not self._reflector.has_listed:
            self._reflector.relist()
        self._reflector.start()
        with self._lock:
            while self._ends and self._ends[0][0] < time.monotonic() - _ENDS_REPORTED_SECONDS:
                self._ends.popleft()
            return [*self._pods.values(), *(pod for _at, pod in self._ends)]

    def close(self) -> None:
        """End the watch. Connections are closed by their owner."""
        self._reflector.close()

    def read(self, pod: Json) -> ExternalPod:
        """Its state."""
        return parse_external_pod(pod)

    def known(self) -> Sequence[ExternalPod]:
        """Nothing: a list contains everything."""
        return ()

    def replace(
        self,
        found: Sequence[ExternalPod],
        before: Sequence[ExternalPod],  # noqa: ARG002
        *,
        was_restored: bool,  # noqa: ARG002
    ) -> None:
        """Update all from a list."""
        last, self._pods = self._pods, {pod.uid: pod for pod in found}
        for pod in last.values():
            if pod.uid not in self._pods:
                self._keep_end(pod)
        self._ended.update(pod.uid for pod in found if _ended_by_itself(pod))
        self._wake()

    def apply(self, kind: str, found: ExternalPod) -> None:
        """Update one from an event of the watch."""
        if kind == "DELETED":
            self._pods.pop(found.uid, None)
            self._keep_end(found)
        else:
            self._pods[found.uid] = found
            if _ended_by_itself(found):
                self._ended.add(found.uid)
        self._wake()

    def _keep_end(self, last: ExternalPod) -> None:
        """A pod that failed after it was asked to end did not fail by itself: it is only gone."""
        if last.phase is PodPhase.SUCCEEDED or (last.phase is PodPhase.FAILED and last.uid in self._ended):
            self._ends.append((time.monotonic(), last))
        self._ended.discard(last.uid)


def _ended_by_itself(pod: ExternalPod) -> bool:
    """Whether it ended before it was asked to."""
    return pod.phase.is_final and not pod.is_ending
