"""A list of an API server that is followed: listed once, and watched from there, in a thread of its own.

A watch that is cut goes on from the last version that was heard; where the server has forgotten that version, all is
listed anew. A server that says nothing for longer than its own signs of life are apart is asked anew. What was told is
always whole as of one version: a list that is older than what was heard meanwhile is dropped, and so is what a server
tells once more. Only a server whose store was put back to an earlier day is believed with what is older: it would be
silent about all that it does until it has counted as far as before.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json

log = logging.getLogger(__name__)
_WATCH_SECONDS = 240
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
_ENDS_WITHIN_SECONDS = 2.0
One = TypeVar("One")


class Keeper(Protocol[One]):
    """Who keeps what is learnt. All but `read` is called with the lock in hand."""

    def read(self, found: Json) -> One | None:
        """What is to be kept of an object; None: nothing."""

    def known(self) -> Sequence[One]:
        """What is there as far as is known, copied."""

    def take_list(self, found: Sequence[One], before: Sequence[One], *, was_put_back: bool) -> None:
        """All that is there. `before`: what was known before it was asked for; others may have come meanwhile.

        `was_put_back`: the server's store is older than before, so versions of what is known say nothing of these.
        """

    def take(self, kind: str, found: One) -> None:
        """It was added, modified or deleted, as `kind` says in capitals."""


class Follower:
    """Of one list. `asked`: what selects from it. `lock`: that of whoever keeps what is learnt."""

    def __init__(
        self,
        api: Api,
        path: str,
        asked: Mapping[str, str],
        keeper: Keeper[Any],
        lock: threading.Condition,
    ) -> None:
        self._api, self._path, self._asked, self._keeper, self._lock = api, path, asked, keeper, lock
        self._version: int | None = None
        self._heard = 0
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def has_listed(self) -> bool:
        """Whether what was told is all that is there, as of some version."""
        return self._version is not None

    def begin(self) -> None:
        """Follow it from now on; once is enough."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_up, name=f"watch {self._path}", daemon=True)
                self._thread.start()

    def list(self) -> None:
        """All that is there at this moment, in pages. Raises BackendError."""
        with self._lock:
            before, heard = self._keeper.known(), self._version
        found: list[Any] = []
        version = 0
        for page in self._api.pages(self._path, **self._asked):
            version = int(page["metadata"]["resourceVersion"])
            found += (one for one in map(self._keeper.read, page.get("items") or ()) if one is not None)
        was_put_back = heard is not None and version < heard
        with self._lock:
            if was_put_back or self._version is None or version >= self._version:
                self._keeper.take_list(found, before, was_put_back=was_put_back)
                self._version = version

    def hear(self, kind: str, told: Json) -> None:
        """An event of the watch."""
        version = int(told["metadata"]["resourceVersion"])
        found = None if kind == "BOOKMARK" else self._keeper.read(told)
        with self._lock:
            if self._version is not None and version <= self._version:
                return
            if found is not None:
                self._keeper.take(kind, found)
            self._version = version

    def close(self) -> None:
        """Follow no more. The watches of this API end, also those of others."""
        self._closing.set()
        if self._thread is not None:
            self._api.end_watches()
            self._thread.join(_ENDS_WITHIN_SECONDS)

    def _keep_up(self) -> None:
        pauses = iter(_PAUSES)
        while not self._closing.is_set():
            heard = self._heard
            trouble = self._trouble()
            if self._heard > heard and self._version is not None:
                pauses = iter(_PAUSES)
            if trouble or self._heard == heard:
                self._rest(trouble or "it ended at once", next(pauses, _PAUSES[-1]))

    def _trouble(self) -> str:
        """Follow until the watch ends; by what it was cut."""
        try:
            if self._version is None or self._was_put_back(self._version):
                self.list()
            self._watch()
        except BackendError as error:
            if isinstance(error, ApiError) and error.status == GONE:
                self._version = None
            return str(error)
        except Exception as error:  # without this thread everybody would go by what was last known
            log.exception("the watch of %s heard what it does not understand", self._path)
            self._version = None
            return str(error) or type(error).__name__
        return ""

    def _was_put_back(self, heard: int) -> bool:
        """Whether the server counts from less than what was heard of it."""
        told = self._api.get(self._path, limit=1)
        return int(told["metadata"]["resourceVersion"]) < heard

    def _watch(self) -> None:
        for event in self._api.watch(self._path, str(self._version), seconds=_WATCH_SECONDS, **self._asked):
            self.hear(event["type"], event["object"])
            self._heard += 1
            if self._closing.is_set():
                return

    def _rest(self, why: str, seconds: float) -> None:
        if not self._closing.is_set():
            log.info("the watch of %s is cut: %s", self._path, why)
            self._closing.wait(seconds)
