"""Whoever follows a list of a server knows all of it as of one version, and does not press a server that is unwell."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.reflector import Reflector

Listed = tuple[int, dict[str, int]]


class Server:
    """One that tells what it is told to tell, and ends each watch at once."""

    def __init__(self) -> None:
        self.listed: Listed = (1, {})
        self.meanwhile: Callable[[], None] = lambda: None
        self.watches = self.lists = 0
        self.trouble: BackendError | None = None

    def pages(self, _path: str, **_params: str) -> Iterator[Json]:
        self.lists += 1
        version, there = self.listed
        self.meanwhile()
        items = [told(name, at) for name, at in there.items()]
        yield {"metadata": {"resourceVersion": str(version)}, "items": items}

    def get(self, _path: str, **_params: int) -> Json:
        return {"metadata": {"resourceVersion": str(self.listed[0])}}

    def watch(self, *_args: Any, **_params: Any) -> Iterator[Json]:
        self.watches += 1
        if self.trouble:
            raise self.trouble
        return iter(())

    def end_watches(self) -> None:
        pass


def told(name: str, version: int) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Names:
    """Keeps the names of what is there."""

    def __init__(self) -> None:
        self.there: set[str] = set()

    def read(self, found: Json) -> str:
        return str(found["metadata"]["name"])

    def known(self) -> Sequence[str]:
        return sorted(self.there)

    def replace(self, found: Sequence[str], before: Sequence[str], *, was_restored: bool) -> None:
        self.there = set(found)

    def apply(self, kind: str, found: str) -> None:
        self.there = self.there - {found} if kind == "DELETED" else self.there | {found}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def reflector(server: Server, names: Names) -> Iterator[Reflector]:
    made = Reflector(server, "/pods", {}, names, threading.Condition())  # type: ignore[arg-type]
    yield made
    made.close()


def test_a_list_that_is_older_than_what_was_heard_meanwhile_brings_nothing_back(reflector, server, names) -> None:
    server.listed = (5, {"a": 1, "b": 2})
    reflector.relist()
    server.meanwhile = lambda: reflector.handle("DELETED", told("a", 6))
    reflector.relist()
    assert names.there == {"b"}


def test_what_a_server_tells_once_more_changes_nothing(reflector, server, names) -> None:
    server.listed = (5, {"a": 1})
    reflector.relist()
    reflector.handle("DELETED", told("a", 6))
    reflector.handle("MODIFIED", told("a", 4))
    reflector.handle("BOOKMARK", told("c", 9))
    assert names.there == set()


def test_a_server_that_was_restored_is_believed(reflector, server, names) -> None:
    server.listed = (50, {"a": 40})
    reflector.relist()
    server.listed = (30, {"b": 2})
    reflector.relist()
    reflector.handle("ADDED", told("c", 31))
    assert names.there == {"b", "c"}


def test_a_server_that_was_restored_is_found_out_when_a_watch_ends(reflector, server, names) -> None:
    server.listed = (50, {"a": 40})
    reflector.relist()
    server.listed = (30, {"b": 2})
    reflector.start()
    give_up_at = time.monotonic() + 30
    while names.there != {"b"}:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.mark.parametrize("trouble", [None, BackendError("it is away")])
def test_a_server_that_ends_each_watch_at_once_is_asked_less_and_less(reflector, server, trouble, monkeypatch) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.0, 0.0, 1000.0))
    server.trouble = trouble
    reflector.start()
    give_up_at = time.monotonic() + 30
    while server.watches < 3:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    reflector.close()
    assert (server.watches, server.lists) == (3, 1)


def test_its_thread_ends_with_close(reflector, server) -> None:
    reflector.start()
    thread = reflector._thread
    reflector.close()
    thread.join(30)
    assert not thread.is_alive()
