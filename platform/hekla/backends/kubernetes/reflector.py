"""A list of an API server, kept up to date in its own thread: listed once, then watched.

An interrupted watch continues from the last version seen. If the server no longer has that version, everything is
listed again. If the server is silent for longer than the interval of its bookmarks, the watch starts again.

The store is always complete as of one version. A list older than the events received during it is dropped, and so is a
repeated event. One exception: a server whose store was restored from a backup continues from an older version, and
would report no changes until it reaches the version seen before. Its list is accepted although it is older.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json

log = logging.getLogger(__name__)
_WATCH_SECONDS = 240
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
_ENDS_WITHIN_SECONDS = 2.0
_FAULT_SECONDS = 60.0
EntryT = TypeVar("EntryT")


class ReflectorStore(Protocol[EntryT]):
    """The store that a reflector fills. All methods except `read` are called with the lock held."""

    def read(self, found: Json) -> EntryT | None:
        """The entry for an object, or None to ignore it."""

    def known(self) -> Sequence[EntryT]:
        """A copy of the entries, for `before` in `replace`."""

    def replace(self, found: Sequence[EntryT], before: Sequence[EntryT], *, was_restored: bool) -> None:
        """Update the store from a complete list. `before`: the entries before the list was requested; events may have
        arrived since. `was_restored`: the server's store is older than before, so known versions are invalid.
        """

    def apply(self, kind: str, found: EntryT) -> None:
        """Apply an event of this kind: ADDED, MODIFIED or DELETED."""


class Reflector:
    """Keeps one list up to date. `selectors`: parameters that select from it. `lock`: the store's lock."""

    def __init__(
        self,
        api: Api,
        path: str,
        selectors: Mapping[str, str],
        store: ReflectorStore[Any],
        lock: threading.Condition,
    ) -> None:
        self._api, self._path, self._selectors, self._store, self._lock = api, path, selectors, store, lock
        self._version: int | None = None
        self._events = 0
        self._fault, self._failed_at = "", float("-inf")
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def has_listed(self) -> bool:
        """Whether the store is complete as of some version."""
        return self._version is not None

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was during the last minute."""
        return self._fault if time.monotonic() - self._failed_at < _FAULT_SECONDS else ""

    def start(self) -> None:
        """Keep the store up to date from now on. Further calls have no effect, also after `close`."""
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                thread = threading.Thread(target=self._run, name=f"watch {self._path}", daemon=True)
                thread.start()  # raises if the system has no thread left; the next call tries again
                self._thread = thread

    def relist(self) -> None:
        """List everything now, in pages. Raises BackendError."""
        with self._lock:
            before, last = self._store.known(), self._version
        found: list[Any] = []
        version = 0
        for page in self._api.pages(self._path, **self._selectors):
            version = int(page["metadata"]["resourceVersion"])
            found += (one for one in map(self._store.read, page.get("items") or ()) if one is not None)
        was_restored = last is not None and version < last
        with self._lock:
            if was_restored or self._version is None or version >= self._version:
                self._store.replace(found, before, was_restored=was_restored)
                self._version = version

    def handle(self, kind: str, body: Json) -> None:
        """Handle an event of the watch, with its object."""
        version = int(body["metadata"]["resourceVersion"])
        found = None if kind == "BOOKMARK" else self._store.read(body)
        with self._lock:
            if self._version is not None and version <= self._version:
                return
            if found is not None:
                self._store.apply(kind, found)
            self._version = version

    def close(self) -> None:
        """Stop. Ends all watches of this `Api` object, also those of other reflectors."""
        self._closing.set()
        if self._thread is not None:
            self._api.end_watches()
            self._thread.join(_ENDS_WITHIN_SECONDS)

    def _run(self) -> None:
        pauses = iter(_PAUSES)
        while not self._closing.is_set():
            events = self._events
            problem = self._follow()
            if self._events > events and self._version is not None:
                pauses = iter(_PAUSES)
            if problem or self._events == events:
                self._back_off(problem or "it ended at once", next(pauses, _PAUSES[-1]))

    def _follow(self) -> str:
        """List if necessary, then watch until the watch ends. Returns the error that ended it, or an empty text."""
        try:
            if self._version is None or self._was_restored(self._version):
                self.relist()
            self._watch()
        except BackendError as error:
            if isinstance(error, ApiError) and error.status == GONE:
                self._version = None
            return str(error)
        except Exception as error:  # if this thread ended, the store would stay outdated
            log.exception("the watch of %s received what it does not understand", self._path)
            self._version = None
            self._fault, self._failed_at = f"{type(error).__name__}: {error}", time.monotonic()
            return self._fault
        return ""

    def _was_restored(self, last: int) -> bool:
        """Whether the server's version is older than the last one seen."""
        found = self._api.get(self._path, limit=1)
        return int(found["metadata"]["resourceVersion"]) < last

    def _watch(self) -> None:
        for event in self._api.watch(self._path, str(self._version), seconds=_WATCH_SECONDS, **self._selectors):
            self.handle(event["type"], event["object"])
            self._events += 1
            if self._closing.is_set():
                return

    def _back_off(self, why: str, seconds: float) -> None:
        if not self._closing.is_set():
            log.info("the watch of %s is cut: %s", self._path, why)
            self._closing.wait(seconds)
