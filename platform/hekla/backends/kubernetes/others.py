"""The pods of one namespace that others left to us, kept up by following the server: all of them as of one version."""

import threading
from collections.abc import Callable, Sequence

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.follower import Follower
from hekla.backends.kubernetes.others_reading import others_pod
from hekla.domain.adopted import OthersPod


class Others:
    """Follows the server from the first question on. Implements `follower.Keeper`.

    `rouse` is called when something changed.
    """

    def __init__(self, api: Api, namespace: str, scheduler_name: str, rouse: Callable[[], None]) -> None:
        asked = {"labelSelector": f"!{names.CLUSTER}", "fieldSelector": f"spec.schedulerName={scheduler_name}"}
        self._rouse = rouse
        self._lock = threading.Condition()
        self._pods: dict[str, OthersPod] = {}
        self._follower = Follower(api, f"/api/v1/namespaces/{namespace}/pods", asked, self, self._lock)

    def all(self, *, fresh: bool) -> Sequence[OthersPod]:
        """All that are there; `fresh`: as of this moment. Raises BackendError."""
        if fresh or not self._follower.has_listed:
            self._follower.list()
        self._follower.begin()
        with self._lock:
            return list(self._pods.values())

    def close(self) -> None:
        """Watch no more; whoever has the connections ends them."""
        self._follower.close()

    def read(self, pod: Json) -> OthersPod:
        """What is so with it."""
        return others_pod(pod)

    def known(self) -> Sequence[OthersPod]:
        """Nothing: a list says all that there is."""
        return ()

    def take_list(self, found: Sequence[OthersPod], before: Sequence[OthersPod]) -> None:  # noqa: ARG002
        """All that there is."""
        self._pods = {pod.uid: pod for pod in found}
        self._rouse()

    def take(self, kind: str, found: OthersPod) -> None:
        """As the watch tells."""
        if kind == "DELETED":
            self._pods.pop(found.uid, None)
        else:
            self._pods[found.uid] = found
        self._rouse()
