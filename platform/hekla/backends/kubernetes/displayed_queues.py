"""Queues of ours as objects of Volcano's kind, for others who look at them in the cluster or name them in a PodGroup.

Nobody reads them for us. What is there is compared with what is so each time, so what somebody changed is put right.
Objects without our label are never touched.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence

from hekla.backends.external_pods import DisplayedQueue
from hekla.backends.kubernetes import names, volcano_reading, walls
from hekla.backends.kubernetes.api import CONFLICT, FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.volcano_manifests import queue_manifest
from hekla.domain.phases import GangPhase

log = logging.getLogger(__name__)
_VERSION = "scheduling.volcano.sh/v1beta1"
_PLACE = f"/apis/{_VERSION}/queues"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class KubernetesQueues:
    """Implements `external_pods.DisplayedQueues`."""

    def __init__(self, api: Api, cluster: str, *, enabled: bool) -> None:
        self.enabled, self._api, self._cluster = enabled, api, cluster
        self._told: set[str] = set()

    def display(self, queues: Sequence[DisplayedQueue], *, heartbeat: Callable[[], None]) -> None:
        """Create, update and delete objects until they are these. Raises BackendError.

        A queue that the server refuses does not stop the others.
        """
        found = self._ours() if queues else self._left()
        wanted = {queue.order.name: queue for queue in queues if self._can_be_named(queue.order.name)}
        for name, queue in wanted.items():
            heartbeat()
            try:
                self._keep(queue, found.get(name))
            except ApiError as error:
                self._tell_once(name, str(error))
        for name in found.keys() - wanted.keys():
            heartbeat()
            self._api.delete(f"{_PLACE}/{name}")

    def _left(self) -> Mapping[str, Json]:
        """What is still to be taken away: nothing where we may not look, or where there is no such kind."""
        try:
            return self._ours()
        except ApiError as error:
            if error.status not in (FORBIDDEN, NOT_FOUND):
                raise
            log.info("whether queues are still shown in the cluster cannot be seen: %s", error)
            return {}

    def _ours(self) -> Mapping[str, Json]:
        wanted = names.selector({names.CLUSTER: self._cluster})
        try:
            pages = list(self._api.pages(_PLACE, labelSelector=wanted))
        except ApiError as error:
            if error.status == NOT_FOUND:
                message = "The cluster does not know the kind Queue of Volcano"
                raise ApiError(NOT_FOUND, error.reason, message) from error
            raise
        return {one["metadata"]["name"]: one for page in pages for one in page.get("items") or ()}

    def _can_be_named(self, name: str) -> bool:
        """Whether Kubernetes takes such a name."""
        if _NAME.fullmatch(name):
            return True
        self._tell_once(name, "Kubernetes takes no such name")
        return False

    def _keep(self, queue: DisplayedQueue, found: Json | None) -> None:
        manifest = queue_manifest(queue.order, self._cluster, _VERSION)
        there = found or self._made(manifest)
        if there is None:
            return
        path = f"{_PLACE}/{queue.order.name}"
        if change := volcano_reading.difference(there.get("spec") or {}, manifest["spec"]):
            self._api.patch(path, {"spec": change})
        if change := walls.difference(there.get("status") or {}, status(queue)):
            self._api.patch(f"{path}/status", {"status": change})

    def _made(self, manifest: Json) -> Json | None:
        """None: somebody else has one of that name."""
        try:
            return self._api.create(_PLACE, manifest)
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            self._tell_once(manifest["metadata"]["name"], "somebody else has a Queue of that name")
            return None

    def _tell_once(self, name: str, why: str) -> None:
        if name not in self._told:
            log.warning("the queue %s is not shown in the cluster: %s", name, why)
            self._told.add(name)


def status(queue: DisplayedQueue) -> Json:
    """How it stands, in Volcano's words: a queue that is closed and not empty is closing."""
    is_empty = not any(queue.gangs.values())
    closed = "Closed" if is_empty else "Closing"
    counts = {phase.value: queue.gangs.get(phase, 0) for phase in GangPhase}
    return {"state": "Open" if queue.is_open else closed, "allocated": dict(queue.allocated), **counts}
