"""A cache of the external pods of one namespace, updated by a watch; consistent as of one version.

The ends of deleted pods are reported for ten minutes, because the caller may not have read the cache in between.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

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

    `wake` is called after each change. `may_claim`: whether Hekla allocates devices.
    """

    def __init__(
        self, api: Api, namespace: str, scheduler_name: str, wake: Callable[[], None], *, may_claim: bool = False
    ) -> None:
        query = {"labelSelector": f"!{names.CLUSTER}", "fieldSelector": f"spec.schedulerName={scheduler_name}"}
        self._wake, self._may_claim = wake, may_claim
        self._lock = threading.Condition()
        self._pods: dict[str, ExternalPod] = {}
        self._ended: set[str] = set()
        self._ends: deque[tuple[float, ExternalPod]] = deque(maxlen=_MAX_ENDS)
        self._reflector = Reflector(api, f"/api/v1/namespaces/{namespace}/pods", query, self, self._lock)

    def all(self, *, fresh: bool) -> Sequence[ExternalPod]:
        """All present pods, and recently deleted ones that had ended. `fresh`: as of now. Raises BackendError."""
        if fresh or not self._reflector.has_listed:
            self._reflector.relist()
        self._reflector.start()
        with self._lock:
            while self._ends and self._ends[0][0] < time.monotonic() - _ENDS_REPORTED_SECONDS:
                self._ends.popleft()
            return [*self._pods.values(), *(pod for _at, pod in self._ends)]

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was recently."""
        return self._reflector.fault

    def close(self) -> None:
        """End the watch. The owner closes the connections."""
        self._reflector.close()

    def read(self, pod: Json) -> ExternalPod:
        """The state of the pod."""
        return parse_external_pod(pod, may_claim=self._may_claim)

    def known(self) -> Sequence[ExternalPod]:
        """Nothing: a list replaces everything, so `replace` needs no earlier entries."""
        return ()

    def replace(
        self,
        found: Sequence[ExternalPod],
        before: Sequence[ExternalPod],  # noqa: ARG002
        *,
        was_restored: bool,  # noqa: ARG002
    ) -> None:
        """Replace all entries by those of a list."""
        last, self._pods = self._pods, {pod.uid: self._without_forced_end(pod) for pod in found}
        for pod in last.values():
            if pod.uid not in self._pods:
                self._keep_end(pod)
        self._ended.update(pod.uid for pod in found if _ended_by_itself(pod))
        self._wake()

    def apply(self, kind: str, found: ExternalPod) -> None:
        """Update an entry from an event of the watch."""
        if kind == "DELETED":
            self._pods.pop(found.uid, None)
            self._keep_end(found)
        else:
            self._pods[found.uid] = self._without_forced_end(found)
            if _ended_by_itself(found):
                self._ended.add(found.uid)
        self._wake()

    def _without_forced_end(self, found: ExternalPod) -> ExternalPod:
        """The pod. If its deletion makes it fail, it keeps its last phase until it is gone: it has not failed."""
        if found.phase is not PodPhase.FAILED or not found.is_ending or found.uid in self._ended:
            return found
        last = self._pods.get(found.uid)
        return replace(last, is_ending=True) if last else replace(found, phase=PodPhase.RUNNING)

    def _keep_end(self, last: ExternalPod) -> None:
        """Keep the end of a deleted pod to report it. A failure caused by the deletion itself does not count."""
        if last.phase is PodPhase.SUCCEEDED or (last.phase is PodPhase.FAILED and last.uid in self._ended):
            self._ends.append((time.monotonic(), last))
        self._ended.discard(last.uid)


def _ended_by_itself(pod: ExternalPod) -> bool:
    """Whether the pod ended before its deletion was requested."""
    return pod.phase.is_final and not pod.is_ending
