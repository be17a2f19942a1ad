"""After each failure of a watch, of any kind and whatever changed in between, the cache equals a fresh list."""

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

import httpx2
import pytest
from tests.backends.kubernetes.test_pod_cache import CUTS, SELECTOR, PodWriter, admin_access, assert_equals_fresh_list
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.kubernetes import access
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json, unreachable
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.lib.clock import now

PATIENCE_SECONDS = 60.0


def _end(_api: "FailingApi") -> None:
    """The server ends the watch after the requested seconds."""


def _break(_api: "FailingApi") -> None:
    raise unreachable(httpx2.ReadError("the connection was reset"))


def _be_silent(_api: "FailingApi") -> None:
    """No data and no bookmarks until the client times out; changes in between are never sent."""
    raise unreachable(httpx2.ReadTimeout("nothing came"))


def _fail(_api: "FailingApi") -> None:
    raise ApiError(500, "InternalError", "the store is away")


def _be_overloaded(_api: "FailingApi") -> None:
    raise ApiError(429, "TooManyRequests", "ask later")


def _expire(_api: "FailingApi") -> None:
    """The resource version is too old."""
    raise ApiError(GONE, "Expired", "too old resource version")


def _send_nonsense(_api: "FailingApi") -> None:
    raise KeyError("metadata")


def _shut_down(api: "FailingApi") -> None:
    """Shuts down the connection under its reader."""
    for line in list(api._watches):
        socket.socket.shutdown(line, socket.SHUT_RDWR)


def _expire_and_break_list(api: "FailingApi") -> None:
    """The resource version is too old, and the next list breaks after its first page."""
    api.broken_lists = 1
    raise ApiError(GONE, "Expired", "too old resource version")


FAILURES: tuple[Callable[["FailingApi"], None], ...] = (
    _end, _break, _be_silent, _fail, _be_overloaded, _expire, _send_nonsense, _shut_down, _expire_and_break_list,
)  # fmt: skip


class FailingApi(Api):
    """An API whose watches fail on demand, with changes while nobody watches."""

    def __init__(self, found: access.Access) -> None:
        super().__init__(found)
        self.next_failure: tuple[Callable[[FailingApi], None], Callable[[], None]] | None = None
        self.broken_lists = 0
        self._events: list[Json] = []

    def watch(self, path: str, version: str, *, seconds: int, **params: str | int) -> Iterator[Json]:
        yield from self._events  # a restored server sends earlier events again
        for event in super().watch(path, version, seconds=seconds, **params):
            if self.next_failure and event["type"] != "BOOKMARK" and self._cut() is _end:
                return
            self._events = [*self._events[-2:], event]
            yield event

    def pages(self, path: str, **params: str | int) -> Iterator[Json]:
        for page in super().pages(path, limit=3, **params):
            yield page
            if self.broken_lists:
                self.broken_lists -= 1
                raise unreachable(httpx2.ReadError("the connection was reset"))

    def _cut(self) -> Callable[["FailingApi"], None]:
        assert self.next_failure
        failure, change = self.next_failure
        change()
        self.next_failure = None
        failure(self)
        return failure


def test_cache_equals_a_fresh_list_after_each_failure(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.001,))
    api, writer = FailingApi(admin_access(control_plane, tmp_path)), PodWriter(control_plane, namespace, seed=3)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", SELECTOR, now)
    cache.list_now()
    lock = Lock()
    for failure in itertools.islice(itertools.cycle(FAILURES), CUTS // 2):
        with lock:
            api.next_failure = failure, lambda: writer.do_some(4, lock)
            writer.create()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while api.next_failure:
            assert time.monotonic() < give_up_at, f"{failure.__name__}: no event arrived to fail at"
            time.sleep(0.001)
        assert_equals_fresh_list(cache, control_plane, namespace)
    cache.close()
    api.close()
