"""Hekla's queues as Volcano's Queues, for people who inspect them in the cluster or name them in a PodGroup.

Hekla only writes them: changes by others are reverted. Objects without our label are never touched.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence

from hekla.backends.external_pods import DisplayedQueue
from hekla.backends.kubernetes import names, tenant_manifests, volcano_state
from hekla.backends.kubernetes.api import CONFLICT, FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.volcano_manifests import queue_manifest
from hekla.domain.phases import GangPhase

log = logging.getLogger(__name__)
_VERSION = "scheduling.volcano.sh/v1beta1"
_PATH = f"/apis/{_VERSION}/queues"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class KubernetesQueues:
    """Implements `external_pods.DisplayedQueues`."""

    def __init__(self, api: Api, cluster: str, *, enabled: bool) -> None:
        self.enabled, self._api, self._cluster = enabled, api, cluster
        self._logged: set[str] = set()

    def display(self, queues: Sequence[DisplayedQueue], *, heartbeat: Callable[[], None]) -> None:
        """Create, update and delete objects to match these queues. Raises BackendError.

        A queue that the server refuses does not stop the others.
        """
        found = self._own_objects() if queues else self._remaining()
        wanted = {queue.order.name: queue for queue in queues if self._is_valid_name(queue.order.name)}
        for name, queue in wanted.items():
            heartbeat()
            try:
                self._apply(queue, found.get(name))
            except ApiError as error:
                self._log_once(name, str(error))
        for name in found.keys() - wanted.keys():
            heartbeat()
            self._api.delete(f"{_PATH}/{name}")

    def _remaining(self) -> Mapping[str, Json]:
        """The objects to delete; none without permission, or if the cluster has no Queues."""
        try:
            return self._own_objects()
        except ApiError as error:
            if error.status not in (FORBIDDEN, NOT_FOUND):
                raise
            log.info("whether queues are still shown in the cluster cannot be seen: %s", error)
            return {}

    def _own_objects(self) -> Mapping[str, Json]:
        wanted = names.selector({names.CLUSTER: self._cluster})
        try:
            pages = list(self._api.pages(_PATH, labelSelector=wanted))
        except ApiError as error:
            if error.status == NOT_FOUND:
                message = "The cluster does not know the kind Queue of Volcano"
                raise ApiError(NOT_FOUND, error.reason, message) from error
            raise
        return {one["metadata"]["name"]: one for page in pages for one in page.get("items") or ()}

    def _is_valid_name(self, name: str) -> bool:
        """Whether Kubernetes accepts the name."""
        if _NAME.fullmatch(name):
            return True
        self._log_once(name, "Kubernetes takes no such name")
        return False

    def _apply(self, queue: DisplayedQueue, found: Json | None) -> None:
        manifest = queue_manifest(queue.order, self._cluster, _VERSION)
        existing = found or self._create(manifest)
        if existing is None:
            return
        path = f"{_PATH}/{queue.order.name}"
        if change := volcano_state.queue_patch(existing, manifest):
            self._api.patch(path, change)
        if change := tenant_manifests.replacement_patch(existing.get("status") or {}, status(queue)):
            self._api.patch(f"{path}/status", {"status": change})

    def _create(self, manifest: Json) -> Json | None:
        """The created Queue, or None if an object of others has this name."""
        try:
            return self._api.create(_PATH, manifest)
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            self._log_once(manifest["metadata"]["name"], "a Queue that Hekla did not create has this name")
            return None

    def _log_once(self, name: str, why: str) -> None:
        if name not in self._logged:
            log.warning("the queue %s is not shown in the cluster: %s", name, why)
            self._logged.add(name)


def status(queue: DisplayedQueue) -> Json:
    """The status of the queue in Volcano's terms: a closed queue that is not empty is closing."""
    is_empty = not any(queue.gangs.values())
    closed = "Closed" if is_empty else "Closing"
    counts = {phase.value: queue.gangs.get(phase, 0) for phase in GangPhase}
    return {"state": "Open" if queue.is_open else closed, "allocated": dict(queue.allocated), **counts}
