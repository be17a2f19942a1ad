"""The pods of ours that an API server has, kept up by following it.

What is here is never older than what was here before: an object replaces another of its place only if its version is
greater, whether a list, the watch or the answer to a write told of it. What is missing from a list was deleted
meanwhile, also where the server's store was put back to a day on which it was not made yet. Pods of one name in two
namespaces are two pods: whoever may make pods in one of them may call them as they like.
"""

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.reading import Place, Seen, seen
from hekla.backends.kubernetes.reflector import Reflector
from hekla.lib.clock import Clock

_NOWHERE: Place = ("", "")
_MAX_CHANGES_KEPT = 500_000
_MAX_GONE_KEPT = 10_000
"""Pods that the server has no more, for whoever has not recorded their ends; a process that only watches never does."""


class Cache:
    """Follows the server from the first question on. Implements `ReflectorStore`."""

    def __init__(
        self, api: Api, path: str, selector: str, clock: Clock, read: Callable[[Json], Seen | None] = seen
    ) -> None:
        self._clock, self.read = clock, read
        self._news = threading.Condition()
        self._reflector = Reflector(api, path, {"labelSelector": selector}, self, self._news)
        self._pods: dict[Place, Seen] = {}
        self._over: dict[Place, None] = {}
        self._dismissed: set[str] = set()
        self._gone: deque[Seen] = deque()
        self._changes: list[Place] = []
        self._dropped = self._roused = 0
        self._life = uuid.uuid4().hex

    # What others ask

    def list_now(self) -> tuple[Sequence[Seen], str]:
        """All pods as the server has them at this moment, and a cursor. Raises BackendError."""
        self._reflector.relist()
        self._reflector.start()
        with self._news:
            return self.all(), self._cursor()

    def since(self, cursor: str) -> tuple[Sequence[Seen], str] | None:
        """What changed after it, and a new one; None where that cursor says nothing here.

        What has ended is told each time until it is dismissed: whoever asks may not have been ready for it before.
        """
        self._reflector.start()
        with self._news:
            life, _, count = cursor.partition(":")
            is_known = life == self._life and count.isdigit() and int(count) >= self._dropped
            if not (is_known and self._reflector.has_listed):
                return None
            changed = dict.fromkeys(self._changes[int(count) - self._dropped :])
            told = {**changed, **self._over}
            return [self._pods[place] for place in told if place in self._pods], self._cursor()

    def all(self) -> Sequence[Seen]:
        """Whatever is known here at this moment."""
        with self._news:
            return list(self._pods.values())

    def there(self) -> Sequence[Seen] | None:
        """Those that the server has, as far as it told; None: it has not told all yet."""
        self._reflector.start()
        with self._news:
            return self.known() if self._reflector.has_listed else None

    def find(self, namespace: str, name: str) -> Seen | None:
        """A pod, as far as it is known here."""
        with self._news:
            return self._pods.get((namespace, name))

    def wait(self, seconds: float) -> bool:
        """Until something changed that has not woken anybody yet."""
        self._reflector.start()
        with self._news:
            self._news.wait_for(lambda: self._count() > self._roused, seconds)
            woken = self._count() > self._roused
            self._roused = self._count()
            return woken

    # What is learnt

    def put(self, pod: Json) -> Seen | None:
        """The server told this of a pod; what is kept of it then, unless it is not ours."""
        found = self.read(pod)
        if found is not None:
            with self._news:
                self._keep(found)
        return found

    def dismiss(self, pods: Iterable[Seen]) -> None:
        """They are deleted; whatever the server still tells of them is of no interest any more."""
        with self._news:
            for pod in pods:
                known = self._drop(pod.place)
                if known is None or not known.is_gone:
                    self._dismissed.add(pod.uid)

    def rouse(self) -> None:
        """Wake whoever waits: something changed that is not kept here."""
        with self._news:
            self._tell(_NOWHERE)

    def close(self) -> None:
        """Watch no more."""
        self._reflector.close()

    def known(self) -> Sequence[Seen]:
        """As far as the server has them."""
        return [one for one in self._pods.values() if not one.is_gone]

    def replace(self, found: Sequence[Seen], before: Sequence[Seen], *, was_restored: bool) -> None:
        """What is not in the list and was known before is gone."""
        there = {one.place: one.uid for one in found}
        if was_restored:
            self._dismissed.clear()
            for place in there:
                self._drop(place)
        for one in found:
            self._keep(one)
        for one in before:
            if there.get(one.place) != one.uid:
                self._lose(one.place, one.uid)
        self._dismissed &= set(there.values())

    def apply(self, kind: str, found: Seen) -> None:
        """What is deleted is known no more as one that was dismissed."""
        if kind == "DELETED":
            self._lose(found.place, found.uid, found)
            self._dismissed.discard(found.uid)
        else:
            self._keep(found)

    def _keep(self, found: Seen) -> None:
        known = self._pods.get(found.place)
        is_old = known is not None and ((known.is_gone and known.uid == found.uid) or known.version >= found.version)
        if is_old or found.uid in self._dismissed:
            return
        self._set(found)

    def _lose(self, place: Place, uid: str, last: Seen | None = None) -> None:
        known = self._pods.get(place)
        if known is None or known.uid != uid or known.is_gone:
            return
        newest = last if last is not None and last.version >= known.version else known
        gone = newest.gone(self._clock())
        self._set(gone)
        self._gone.append(gone)
        if len(self._gone) > _MAX_GONE_KEPT and self._pods.get((oldest := self._gone.popleft()).place) is oldest:
            self._drop(oldest.place)

    def _set(self, one: Seen) -> None:
        self._pods[one.place] = one
        self._over.pop(one.place, None)
        if one.observation.phase.is_final:
            self._over[one.place] = None
        self._tell(one.place)

    def _drop(self, place: Place) -> Seen | None:
        self._over.pop(place, None)
        return self._pods.pop(place, None)

    def _tell(self, place: Place) -> None:
        self._changes.append(place)
        if len(self._changes) > _MAX_CHANGES_KEPT:
            self._dropped += len(self._changes)
            self._changes.clear()
        self._news.notify_all()

    def _count(self) -> int:
        return self._dropped + len(self._changes)

    def _cursor(self) -> str:
        return f"{self._life}:{self._count()}"
