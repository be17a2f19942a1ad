"""The pods of one namespace that others left to us, kept up by listing once and watching from there.

What is kept is always all of it as of one version of the server: a list that is older than what was heard meanwhile is
dropped, and of the watch only what is newer than the list is heard.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json
from hekla.backends.kubernetes.others_reading import others_pod
from hekla.domain.adopted import OthersPod

log = logging.getLogger(__name__)
_WATCH_SECONDS = 240
_REST_SECONDS = 2.0
_ENDS_WITHIN_SECONDS = 2.0


class Others:
    """Keeps itself up in a thread of its own, from the first question on. `rouse` is called when something changed."""

    def __init__(self, api: Api, namespace: str, scheduler_name: str, rouse: Callable[[], None]) -> None:
        self._api, self._path, self._rouse = api, f"/api/v1/namespaces/{namespace}/pods", rouse
        self._asked: dict[str, Any] = {
            "labelSelector": f"!{names.CLUSTER}",
            "fieldSelector": f"spec.schedulerName={scheduler_name}",
        }
        self._lock = threading.Lock()
        self._pods: dict[str, OthersPod] = {}
        self._version: int | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def all(self, *, fresh: bool) -> Sequence[OthersPod]:
        """All that are there; `fresh`: as of this moment. Raises BackendError."""
        if fresh or self._version is None:
            self._list()
        with self._lock:
            self._begin()
            return list(self._pods.values())

    def close(self) -> None:
        """Watch no more; whoever has the connections ends them."""
        self._closing.set()
        if self._thread is not None:
            self._api.end_watches()
            self._thread.join(_ENDS_WITHIN_SECONDS)

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_up, name=f"others {self._path}", daemon=True)
            self._thread.start()

    def _keep_up(self) -> None:
        while not self._closing.is_set():
            try:
                if self._version is None:
                    self._list()
                self._watch(self._version)
            except BackendError as error:
                if isinstance(error, ApiError) and error.status == GONE:
                    self._version = None
                self._rest(error)
            except Exception as error:  # without this thread everybody would go by what was last known
                log.exception("the watch of %s heard what it does not understand", self._path)
                self._version = None
                self._rest(error)

    def _rest(self, error: Exception) -> None:
        if not self._closing.is_set():
            log.info("the watch of %s is cut: %s", self._path, error)
            self._closing.wait(_REST_SECONDS)

    def _list(self) -> None:
        found: dict[str, OthersPod] = {}
        version = 0
        for page in self._api.pages(self._path, **self._asked):
            version = int(page["metadata"]["resourceVersion"])
            found |= {pod["metadata"]["uid"]: others_pod(pod) for pod in page.get("items") or ()}
        with self._lock:
            if self._version is None or version >= self._version:
                self._pods, self._version = found, version
        self._rouse()

    def _watch(self, version: int | None) -> None:
        for event in self._api.watch(self._path, str(version), seconds=_WATCH_SECONDS, **self._asked):
            self._take(event["type"], event["object"])
            if self._closing.is_set():
                return

    def _take(self, kind: str, pod: Json) -> None:
        version = int(pod["metadata"]["resourceVersion"])
        with self._lock:
            if self._version is not None and version <= self._version:
                return
            if kind == "DELETED":
                self._pods.pop(pod["metadata"]["uid"], None)
            elif kind != "BOOKMARK":
                self._pods[pod["metadata"]["uid"]] = others_pod(pod)
            self._version = version
        if kind != "BOOKMARK":
            self._rouse()
