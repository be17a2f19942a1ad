"""The objects of one kind on an API server, as they are, kept up to date by a watch."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.pod_state import ObjectName
from hekla.backends.kubernetes.reflector import Reflector

log = logging.getLogger(__name__)
_ABSENCE_VALID_SECONDS = 60.0


class StoredObject(NamedTuple):
    """An object and its version."""

    name: ObjectName
    version: int
    body: Json


class ObjectStore:
    """The objects below one path. Implements `ReflectorStore`. `wake`: called after each change."""

    def __init__(self, api: Api, path: str, wake: Callable[[], None]) -> None:
        self._lock = threading.Condition()
        self._wake = wake
        self._known: dict[ObjectName, StoredObject] = {}
        self._reflector = Reflector(api, path, {}, self, self._lock)
        self.changes = 0
        """How often an object has changed."""

    def follow(self) -> None:
        """List the objects if necessary, and follow their changes from now on. Raises BackendError."""
        if not self._reflector.has_listed:
            self._reflector.relist()
        self._reflector.start()

    def all(self) -> Sequence[StoredObject]:
        """All objects."""
        with self._lock:
            return list(self._known.values())

    def find(self, namespace: str, name: str) -> Json | None:
        """The last known state of an object."""
        with self._lock:
            found = self._known.get((namespace, name))
        return found.body if found else None

    def put(self, body: Json) -> None:
        """Update from the response to a write."""
        with self._lock:
            self._update(self.read(body))

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was recently."""
        return self._reflector.fault

    def close(self) -> None:
        """End the watch. The owner closes the connections."""
        self._reflector.close()

    def read(self, found: Json) -> StoredObject:
        """The object without the history of its fields."""
        meta = found["metadata"]
        meta.pop("managedFields", None)
        return StoredObject((meta.get("namespace", ""), meta["name"]), int(meta["resourceVersion"]), found)

    def known(self) -> Sequence[StoredObject]:
        """All objects."""
        return list(self._known.values())

    def replace(self, found: Sequence[StoredObject], before: Sequence[StoredObject], *, was_restored: bool) -> None:
        """Replace everything by a list."""
        del before, was_restored
        self._known = {one.name: one for one in found}
        self._record_change()

    def apply(self, kind: str, found: StoredObject) -> None:
        """Update one object from an event of the watch."""
        if kind == "DELETED":
            self._known.pop(found.name, None)
            self._record_change()
        else:
            self._update(found)

    def _update(self, found: StoredObject) -> None:
        known = self._known.get(found.name)
        if known is None or known.version < found.version:
            self._known[found.name] = found
            self._record_change()

    def _record_change(self) -> None:
        self.changes += 1
        self._wake()


class OptionalObjectStore(ObjectStore):
    """Objects of a kind that the server may not have, or not let us read."""

    def __init__(self, api: Api, path: str, wake: Callable[[], None]) -> None:
        super().__init__(api, path, wake)
        self._path = path
        self._absent_until = float("-inf")

    @property
    def is_absent(self) -> bool:
        """Whether the server has refused the objects within the last minute."""
        return time.monotonic() < self._absent_until

    def follow_if_possible(self) -> bool:
        """Follow the objects. Returns whether they are known. A refusal is valid for a minute."""
        if self.is_absent:
            return False
        try:
            self.follow()
        except BackendError as error:
            log.info("%s cannot be listed: %s", self._path, error)
            if isinstance(error, ApiError) and error.status in (NOT_FOUND, FORBIDDEN):
                self._absent_until = time.monotonic() + _ABSENCE_VALID_SECONDS
            return False
        return True
