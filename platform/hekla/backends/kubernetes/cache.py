"""The pods of ours that an API server has, kept up by listing once and watching from there.

What is here is never older than what was here before: an object replaces another of its name only if its version is
greater. A watch that is cut goes on from the last version that was seen; where the server has forgotten that version,
all is listed again and what is missing from the list was deleted meanwhile. A server that says nothing for longer than
its own signs of life are apart is asked anew.
"""

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json
from hekla.backends.kubernetes.reading import Seen, seen
from hekla.lib.clock import Clock

log = logging.getLogger(__name__)
_WATCH_SECONDS = 240
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
_ENDS_WITHIN_SECONDS = 2.0
_MAX_CHANGES_KEPT = 500_000
_MAX_GONE_KEPT = 10_000
"""Pods that the server has no more, for whoever has not recorded their ends; a process that only watches never does."""


class Cache:
    """Keeps itself up in a thread of its own, from the first question on."""

    def __init__(
        self, api: Api, path: str, selector: str, clock: Clock, read: Callable[[Json], Seen | None] = seen
    ) -> None:
        self._api, self._path, self._selector, self._clock, self._read = api, path, selector, clock, read
        self._news = threading.Condition()
        self._pods: dict[str, Seen] = {}
        self._over: dict[str, None] = {}
        self._dismissed: set[str] = set()
        self._gone: deque[Seen] = deque()
        self._changes: list[str] = []
        self._dropped = self._roused = 0
        self._life = uuid.uuid4().hex
        self._version: int | None = None
        self._listed_at = 0
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    # What others ask

    def list_now(self) -> tuple[Sequence[Seen], str]:
        """All pods as the server has them at this moment, and a cursor. Raises BackendError."""
        self._list()
        self._begin()
        with self._news:
            return self.all(), self._cursor()

    def since(self, cursor: str) -> tuple[Sequence[Seen], str] | None:
        """What changed after it, and a new one; None where that cursor says nothing here.

        What has ended is told each time until it is dismissed: whoever asks may not have been ready for it before.
        """
        self._begin()
        with self._news:
            life, _, count = cursor.partition(":")
            if life != self._life or not count.isdigit() or self._version is None or int(count) < self._dropped:
                return None
            changed = dict.fromkeys(self._changes[int(count) - self._dropped :])
            told = {**changed, **self._over}
            return [self._pods[name] for name in told if name in self._pods], self._cursor()

    def all(self) -> Sequence[Seen]:
        """Whatever is known here at this moment."""
        with self._news:
            return list(self._pods.values())

    def find(self, name: str) -> Seen | None:
        """A pod by its name, as far as it is known here."""
        with self._news:
            return self._pods.get(name)

    def wait(self, seconds: float) -> bool:
        """Until something changed that has not woken anybody yet."""
        self._begin()
        with self._news:
            self._news.wait_for(lambda: self._count() > self._roused, seconds)
            woken = self._count() > self._roused
            self._roused = self._count()
            return woken

    # What is learnt

    def put(self, pod: Json) -> Seen | None:
        """The server told this of a pod; what is kept of it then, unless it is not ours."""
        found = self._read(pod)
        if found is not None:
            with self._news:
                self._keep(found)
        return found

    def dismiss(self, pods: Iterable[Seen]) -> None:
        """They are deleted; whatever the server still tells of them is of no interest any more."""
        with self._news:
            for pod in pods:
                known = self._drop(pod.name)
                if known is None or not known.is_gone:
                    self._dismissed.add(pod.uid)

    def rouse(self) -> None:
        """Wake whoever waits: something changed that is not kept here."""
        with self._news:
            self._tell("")

    def close(self) -> None:
        """Watch no more."""
        self._closing.set()
        if self._thread is not None:
            self._api.end_watches()
            self._thread.join(_ENDS_WITHIN_SECONDS)

    def _keep(self, found: Seen) -> None:
        known = self._pods.get(found.name)
        is_old = known is not None and ((known.is_gone and known.uid == found.uid) or known.version >= found.version)
        if is_old or found.uid in self._dismissed:
            return
        self._set(found)

    def _lose(self, name: str, uid: str, last: Seen | None = None) -> None:
        known = self._pods.get(name)
        if known is None or known.uid != uid or known.is_gone:
            return
        newest = last if last is not None and last.version >= known.version else known
        gone = newest.gone(self._clock())
        self._set(gone)
        self._gone.append(gone)
        if len(self._gone) > _MAX_GONE_KEPT and self._pods.get((oldest := self._gone.popleft()).name) is oldest:
            self._drop(oldest.name)

    def _set(self, one: Seen) -> None:
        self._pods[one.name] = one
        self._over.pop(one.name, None)
        if one.observation.phase.is_final:
            self._over[one.name] = None
        self._tell(one.name)

    def _drop(self, name: str) -> Seen | None:
        self._over.pop(name, None)
        return self._pods.pop(name, None)

    def _tell(self, name: str) -> None:
        self._changes.append(name)
        if len(self._changes) > _MAX_CHANGES_KEPT:
            self._dropped += len(self._changes)
            self._changes.clear()
        self._news.notify_all()

    def _count(self) -> int:
        return self._dropped + len(self._changes)

    def _cursor(self) -> str:
        return f"{self._life}:{self._count()}"

    # The thread

    def _begin(self) -> None:
        with self._news:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_up, name=f"watch {self._path}", daemon=True)
                self._thread.start()

    def _keep_up(self) -> None:
        pauses = iter(_PAUSES)
        while not self._closing.is_set():
            try:
                if self._version is None:
                    self._list()
                self._watch(self._version)
                pauses = iter(_PAUSES)
            except ApiError as error:
                self._version = None if error.status == GONE else self._version
                self._rest(error, next(pauses, _PAUSES[-1]))
            except BackendError as error:
                self._rest(error, next(pauses, _PAUSES[-1]))
            except Exception as error:  # without this thread everybody would go by what was last known
                log.exception("the watch of %s heard what it does not understand", self._path)
                self._version = None
                self._rest(error, next(pauses, _PAUSES[-1]))

    def _rest(self, error: Exception, seconds: float) -> None:
        if not self._closing.is_set():
            log.info("the watch of %s is cut: %s", self._path, error)
            self._closing.wait(seconds)

    def _list(self) -> None:
        before = self._known_now()
        found: dict[str, Seen] = {}
        version = 0
        for page in self._api.pages(self._path, labelSelector=self._selector):
            version = int(page["metadata"]["resourceVersion"])
            found |= {one.name: one for one in map(self._read, page.get("items") or ()) if one is not None}
        with self._news:
            if version >= self._listed_at:  # else a newer list came first
                self._take_list(found, before, version)

    def _take_list(self, found: Mapping[str, Seen], before: Iterable[tuple[str, str]], version: int) -> None:
        for one in found.values():
            self._keep(one)
        for name, uid in before:
            if name not in found or found[name].uid != uid:
                self._lose(name, uid)
        self._dismissed &= {one.uid for one in found.values()}
        self._version = version if self._version is None else max(self._version, version)
        self._listed_at = version

    def _known_now(self) -> list[tuple[str, str]]:
        """Before a list is asked for: what comes to be known meanwhile need not stand in it."""
        with self._news:
            return [(one.name, one.uid) for one in self._pods.values() if not one.is_gone]

    def _watch(self, version: int | None) -> None:
        asked = {"labelSelector": self._selector, "seconds": _WATCH_SECONDS}
        for event in self._api.watch(self._path, str(version), **asked):  # type: ignore[arg-type]
            self._take(event["type"], event["object"])
            if self._closing.is_set():
                return

    def _take(self, kind: str, pod: Json) -> None:
        """What happened before the newest list stands in it: told late, it would bring deleted pods back."""
        version = int(pod["metadata"]["resourceVersion"])
        found = None if kind == "BOOKMARK" else self._read(pod)
        with self._news:
            if version <= self._listed_at:
                return
            if found is not None and kind == "DELETED":
                self._lose(found.name, found.uid, found)
                self._dismissed.discard(found.uid)
            elif found is not None:
                self._keep(found)
            self._version = version
