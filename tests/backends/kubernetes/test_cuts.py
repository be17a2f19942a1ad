"""After each cut, of whatever kind and whatever happened meanwhile, the cache holds what a fresh list holds."""

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

import httpx2
import pytest
from tests.backends.kubernetes.test_pod_cache import CUTS, OURS, People, compare, reached
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.kubernetes import access
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json, unreachable
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.lib.clock import now

PATIENCE_SECONDS = 60.0


def _ends(_api: "Cut") -> None:
    """The server ends it, as it does after the seconds that it was asked for."""


def _breaks(_api: "Cut") -> None:
    raise unreachable(httpx2.ReadError("the connection was reset"))


def _is_silent(_api: "Cut") -> None:
    """Not even signs of life, until nobody waits for them any more; what happened meanwhile was never told."""
    raise unreachable(httpx2.ReadTimeout("nothing came"))


def _fails(_api: "Cut") -> None:
    raise ApiError(500, "InternalError", "the store is away")


def _has_too_many(_api: "Cut") -> None:
    raise ApiError(429, "TooManyRequests", "ask later")


def _forgets(_api: "Cut") -> None:
    """The version from which to go on is too old."""
    raise ApiError(GONE, "Expired", "too old resource version")


def _says_nonsense(_api: "Cut") -> None:
    raise KeyError("metadata")


def _is_shut(api: "Cut") -> None:
    """The connection itself, under whoever reads from it."""
    for line in list(api._watches):
        socket.socket.shutdown(line, socket.SHUT_RDWR)


def _lists_in_vain(api: "Cut") -> None:
    """The version is too old, and the list that is asked for then breaks off after its first page."""
    api.broken_lists = 1
    raise ApiError(GONE, "Expired", "too old resource version")


WAYS: tuple[Callable[["Cut"], None], ...] = (
    _ends, _breaks, _is_silent, _fails, _has_too_many, _forgets, _says_nonsense, _is_shut, _lists_in_vain,
)  # fmt: skip


class Cut(Api):
    """An API whose watches are cut when that is ordered, and what is to happen while nobody watches is done then."""

    def __init__(self, found: access.Access) -> None:
        super().__init__(found)
        self.order: tuple[Callable[[Cut], None], Callable[[], None]] | None = None
        self.broken_lists = 0
        self._told: list[Json] = []

    def watch(self, path: str, version: str, *, seconds: int, **params: str | int) -> Iterator[Json]:
        yield from self._told  # a server that was put back tells again what it told before
        for event in super().watch(path, version, seconds=seconds, **params):
            if self.order and event["type"] != "BOOKMARK" and self._cut() is _ends:
                return
            self._told = [*self._told[-2:], event]
            yield event

    def pages(self, path: str, **params: str | int) -> Iterator[Json]:
        for page in super().pages(path, limit=3, **params):
            yield page
            if self.broken_lists:
                self.broken_lists -= 1
                raise unreachable(httpx2.ReadError("the connection was reset"))

    def _cut(self) -> Callable[["Cut"], None]:
        assert self.order
        way, meanwhile = self.order
        meanwhile()
        self.order = None
        way(self)
        return way


def test_after_each_cut_the_cache_is_what_a_fresh_list_is(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.001,))
    api, people = Cut(reached(control_plane, tmp_path)), People(control_plane, namespace, seed=3)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", OURS, now)
    cache.list_now()
    turn = Lock()
    for way in itertools.islice(itertools.cycle(WAYS), CUTS):
        with turn:
            api.order = way, lambda: people.do_some(4, turn)
            people.make()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while api.order:
            assert time.monotonic() < give_up_at, f"{way.__name__}: no event comes that could be cut off"
            time.sleep(0.001)
        compare(cache, control_plane, namespace)
    cache.close()
    api.close()
