"""A cache of our pods on an API server, updated by a watch.

Versions never go back: an object replaces another of the same name only if its version is greater, whether it comes
from a list, the watch or the response to a write. A pod missing from a list was deleted, also if the server's store was
restored to a time before its creation. Pods with the same name in two namespaces are different: others may create pods
with any name in one of them.
"""

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.pod_state import ObjectName, PodState, parse_pod
from hekla.backends.kubernetes.reflector import Reflector
from hekla.lib.clock import Clock

_NO_POD: ObjectName = ("", "")
_MAX_CHANGES = 500_000
_MAX_DELETED = 10_000
"""Deleted pods whose ends may not be recorded yet; a process that only watches never records any."""


class PodCache:
    """Watches the server from the first read on. Implements `ReflectorStore`."""

    def __init__(
        self, api: Api, path: str, selector: str, clock: Clock, read: Callable[[Json], PodState | None] = parse_pod
    ) -> None:
        self._clock, self.read = clock, read
        self._changed = threading.Condition()
        self._reflector = Reflector(api, path, {"labelSelector": selector}, self, self._changed)
        self._pods: dict[ObjectName, PodState] = {}
        self._ended: dict[ObjectName, None] = {}
        self._dismissed: set[str] = set()
        self._deleted: deque[PodState] = deque()
        self._changes: list[ObjectName] = []
        self._dropped = self._reported = 0
        self._id = uuid.uuid4().hex

    # Reads

    def list_now(self) -> tuple[Sequence[PodState], str]:
        """All pods from the server as of now, and a cursor. Raises BackendError."""
        self._reflector.relist()
        self._reflector.start()
        with self._changed:
            return self.all(), self._cursor()

    def since(self, cursor: str) -> tuple[Sequence[PodState], str] | None:
        """The pods that changed after the cursor, and a new cursor; None if the cursor is not from this cache.

        Ended pods are included each time until they are dismissed, because the caller may not have recorded them yet.
        """
        self._reflector.start()
        with self._changed:
            cache_id, _, count = cursor.partition(":")
            is_known = cache_id == self._id and count.isdigit() and int(count) >= self._dropped
            if not (is_known and self._reflector.has_listed):
                return None
            changed = dict.fromkeys(self._changes[int(count) - self._dropped :])
            names = {**changed, **self._ended}
            return [self._pods[name] for name in names if name in self._pods], self._cursor()

    def all(self) -> Sequence[PodState]:
        """All entries."""
        with self._changed:
            return list(self._pods.values())

    def list_present(self) -> Sequence[PodState] | None:
        """The pods that are not deleted; None before the first list has arrived."""
        self._reflector.start()
        with self._changed:
            return self.known() if self._reflector.has_listed else None

    def find(self, namespace: str, name: str) -> PodState | None:
        """The entry of a pod."""
        with self._changed:
            return self._pods.get((namespace, name))

    def wait(self, seconds: float) -> bool:
        """Block until there is a change that no earlier call reported. Returns whether there is one."""
        self._reflector.start()
        with self._changed:
            self._changed.wait_for(lambda: self._count() > self._reported, seconds)
            has_changed = self._count() > self._reported
            self._reported = self._count()
            return has_changed

    # Updates

    def put(self, pod: Json) -> PodState | None:
        """Update the entry from this object. Returns its state, or None if it is not ours."""
        found = self.read(pod)
        if found is not None:
            with self._changed:
                self._update(found)
        return found

    def dismiss(self, pods: Iterable[PodState]) -> None:
        """Drop these deleted pods, and ignore later reports about them."""
        with self._changed:
            for pod in pods:
                known = self._drop(pod.object_name)
                if known is None or not known.is_deleted:
                    self._dismissed.add(pod.uid)

    def wake(self) -> None:
        """Wake the caller of `wait` after a change of something that is not cached here."""
        with self._changed:
            self._record_change(_NO_POD)

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was recently."""
        return self._reflector.fault

    def close(self) -> None:
        """End the watch."""
        self._reflector.close()

    def known(self) -> Sequence[PodState]:
        """The entries of pods that are not deleted."""
        return [pod for pod in self._pods.values() if not pod.is_deleted]

    def replace(self, found: Sequence[PodState], before: Sequence[PodState], *, was_restored: bool) -> None:
        """Update the entries from a list. Those of `before` that are missing from it are deleted."""
        listed = {pod.object_name: pod.uid for pod in found}
        if was_restored:
            self._dismissed.clear()
            for name in listed:
                self._drop(name)
        for pod in found:
            self._update(pod)
        for pod in before:
            if listed.get(pod.object_name) != pod.uid:
                self._mark_deleted(pod.object_name, pod.uid)
        self._dismissed &= set(listed.values())

    def apply(self, kind: str, found: PodState) -> None:
        """Update an entry from an event of the watch."""
        if kind == "DELETED":
            self._mark_deleted(found.object_name, found.uid, found)
            self._dismissed.discard(found.uid)
        else:
            self._update(found)

    def _update(self, found: PodState) -> None:
        known = self._pods.get(found.object_name)
        is_old = known is not None and ((known.is_deleted and known.uid == found.uid) or known.version >= found.version)
        if is_old or found.uid in self._dismissed:
            return
        self._set(found)

    def _mark_deleted(self, name: ObjectName, uid: str, last: PodState | None = None) -> None:
        known = self._pods.get(name)
        if known is None or known.uid != uid or known.is_deleted:
            return
        newest = last if last is not None and last.version >= known.version else known
        deleted = newest.as_deleted(self._clock())
        self._set(deleted)
        self._deleted.append(deleted)
        if len(self._deleted) > _MAX_DELETED:
            oldest = self._deleted.popleft()
            if self._pods.get(oldest.object_name) is oldest:
                self._drop(oldest.object_name)

    def _set(self, pod: PodState) -> None:
        self._pods[pod.object_name] = pod
        self._ended.pop(pod.object_name, None)
        if pod.observation.phase.is_final:
            self._ended[pod.object_name] = None
        self._record_change(pod.object_name)

    def _drop(self, name: ObjectName) -> PodState | None:
        self._ended.pop(name, None)
        return self._pods.pop(name, None)

    def _record_change(self, name: ObjectName) -> None:
        self._changes.append(name)
        if len(self._changes) > _MAX_CHANGES:
            self._dropped += len(self._changes)
            self._changes.clear()
        self._changed.notify_all()

    def _count(self) -> int:
        return self._dropped + len(self._changes)

    def _cursor(self) -> str:
        return f"{self._id}:{self._count()}"
