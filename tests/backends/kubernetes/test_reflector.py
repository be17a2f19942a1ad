"""The reflector: it knows a whole list as of one version, and spares a server that is unwell."""

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
    """A server with a given list, whose watches end at once."""

    def __init__(self) -> None:
        self.listed: Listed = (1, {})
        self.during_list: Callable[[], None] = lambda: None
        self.watches = self.lists = 0
        self.trouble: BackendError | None = None

    def pages(self, _path: str, **_params: str) -> Iterator[Json]:
        self.lists += 1
        version, versions = self.listed
        self.during_list()
        items = [named(name, at) for name, at in versions.items()]
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


def named(name: str, version: int) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Names:
    """A store of names."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def read(self, found: Json) -> str:
        return str(found["metadata"]["name"])

    def known(self) -> Sequence[str]:
        return sorted(self.names)

    def replace(self, found: Sequence[str], before: Sequence[str], *, was_restored: bool) -> None:
        self.names = set(found)

    def apply(self, kind: str, found: str) -> None:
        self.names = self.names - {found} if kind == "DELETED" else self.names | {found}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def store() -> Names:
    return Names()


@pytest.fixture
def reflector(server: Server, store: Names) -> Iterator[Reflector]:
    made = Reflector(server, "/pods", {}, store, threading.Condition())  # type: ignore[arg-type]
    yield made
    made.close()


def test_list_older_than_a_watch_event_restores_nothing(reflector, server, store) -> None:
    server.listed = (5, {"a": 1, "b": 2})
    reflector.relist()
    server.during_list = lambda: reflector.handle("DELETED", named("a", 6))
    reflector.relist()
    assert store.names == {"b"}


def test_repeated_events_change_nothing(reflector, server, store) -> None:
    server.listed = (5, {"a": 1})
    reflector.relist()
    reflector.handle("DELETED", named("a", 6))
    reflector.handle("MODIFIED", named("a", 4))
    reflector.handle("BOOKMARK", named("c", 9))
    assert store.names == set()


def test_restored_server_is_followed(reflector, server, store) -> None:
    server.listed = (50, {"a": 40})
    reflector.relist()
    server.listed = (30, {"b": 2})
    reflector.relist()
    reflector.handle("ADDED", named("c", 31))
    assert store.names == {"b", "c"}


def test_restored_server_is_detected_when_a_watch_ends(reflector, server, store) -> None:
    server.listed = (50, {"a": 40})
    reflector.relist()
    server.listed = (30, {"b": 2})
    reflector.start()
    give_up_at = time.monotonic() + 30
    while store.names != {"b"}:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.mark.parametrize("trouble", [None, BackendError("it is away")])
def test_pauses_grow_if_watches_end_at_once(reflector, server, trouble, monkeypatch) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.0, 0.0, 1000.0))
    server.trouble = trouble
    reflector.start()
    give_up_at = time.monotonic() + 30
    while server.watches < 3:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    reflector.close()
    assert (server.watches, server.lists) == (3, 1)


def test_thread_ends_with_close(reflector, server) -> None:
    reflector.start()
    thread = reflector._thread
    reflector.close()
    thread.join(30)
    assert not thread.is_alive()


def test_unexpected_error_shows_and_the_watch_begins_again_with_a_list(
    reflector, server, store, monkeypatch, caplog
) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.01,))
    server.listed = (5, {"a": 1})
    assert reflector.fault == ""
    server.trouble = ZeroDivisionError("odd")
    reflector.start()
    give_up_at = time.monotonic() + 30
    while server.lists < 2:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    assert reflector.fault == "ZeroDivisionError: odd"
    assert "Traceback" in caplog.text
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._FAULT_SECONDS", 0.0)
    assert reflector.fault == ""


def test_watch_that_could_not_start_is_started_again(reflector, server, monkeypatch) -> None:
    def fail(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            reflector.start()
    reflector.start()
    give_up_at = time.monotonic() + 30
    while not server.lists:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
