"""API servers that send one byte every few moments, or without end: no request and no event takes for ever."""

import gzip
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from kubernetes.client import Configuration
from tests.controller.conftest import World
from tests.controller.test_silent_server import SLOTS, ControlSlots, kubeconfig, seconds_until_complete
from tests.kubernetes.certificates import Certificates
from tests.support.dripping_server import dripping_server

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.backends.base import BackendError
from hekla.backends.kubernetes import answer_limits, api, async_client
from hekla.backends.kubernetes.access import Access
from hekla.backends.kubernetes.api import Api
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.login import Login
from hekla.controller.backends import backend_of
from hekla.lib import clock

SECONDS = 0.5
MOST_SECONDS = 5.0
"""On a busy machine."""
TIMEOUT = urllib3.Timeout(connect=5.0, read=SECONDS)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
DRIPPING_HEADS = {
    "version": (b"HTTP", b"/"),
    "head": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "error": (b"HTTP/1.1 500 No\r\n\r\n", b"x"),
}
DRIPPING_BODIES = {
    "body": (HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without a length": (HEAD + b"\r\n", b" "),
    "chunks": (CHUNKED, b"1\r\n \r\n"),
    "size of a chunk": (CHUNKED, b"0"),
}
GZIP = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"


def access_to(url: str) -> Access:
    return Access(lambda: Login(Configuration(host=url), ssl.create_default_context()), renewable=False)


@pytest.mark.parametrize("case", [*DRIPPING_HEADS, *DRIPPING_BODIES])
def test_answer_has_a_limited_time(case: str) -> None:
    with dripping_server(*(DRIPPING_HEADS | DRIPPING_BODIES)[case]) as url:
        client = Api(access_to(url), timeout=TIMEOUT)
        began_at = time.monotonic()
        with pytest.raises(BackendError):
            client.get("/api/v1/pods")
        assert SECONDS <= time.monotonic() - began_at < MOST_SECONDS
        with pytest.raises(BackendError, match="asked again"):
            client.get("/api/v1/pods")
        client.close()


@pytest.mark.parametrize("case", [*DRIPPING_HEADS, *DRIPPING_BODIES])
def test_event_of_a_watch_has_a_limited_time(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_BOOKMARKS_WITHIN_SECONDS", 2 * SECONDS)
    monkeypatch.setattr(api, "_EVENT_SECONDS", SECONDS)
    with dripping_server(*(DRIPPING_HEADS | DRIPPING_BODIES)[case]) as url:
        client = Api(access_to(url))
        began_at = time.monotonic()
        with pytest.raises(BackendError):
            list(client.watch("/api/v1/pods", "1", seconds=60))
        assert SECONDS <= time.monotonic() - began_at < MOST_SECONDS
        client.close()


def test_slow_answer_within_its_time_is_read() -> None:
    with dripping_server(HEAD + b"Content-Length: 8\r\n\r\n{}", b" ") as url:
        client = Api(access_to(url), timeout=TIMEOUT)
        assert client.get("/api/v1/pods") == {}
        client.close()


def test_watch_is_longer_than_an_event_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_EVENT_SECONDS", SECONDS / 5)
    monkeypatch.setattr(api, "_BOOKMARKS_WITHIN_SECONDS", SECONDS / 2)
    with dripping_server(HEAD + b"\r\n", b'{"type": "BOOKMARK"}\n') as url:
        client, began_at = Api(access_to(url)), time.monotonic()
        for event in client.watch("/api/v1/pods", "1", seconds=60):
            assert event == {"type": "BOOKMARK"}
            if time.monotonic() - began_at > 3 * SECONDS:
                break
        client.close()


def by_api(url: str) -> object:
    return Api(access_to(url)).get("/api/v1/pods")


def by_async_client(url: str) -> object:
    client, found = AsyncClient(access_to(url)), []

    async def read(_number: int) -> None:
        found.append(await client.get("/api/v1/pods"))

    try:
        client.run_all(read, [1])
    finally:
        client.close()
    return found[0]


@pytest.mark.parametrize("read", [by_api, by_async_client])
@pytest.mark.parametrize("is_packed", [False, True])
def test_answer_has_a_limited_size(
    read: Callable[[str], object], is_packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_limits, "MAX_ANSWER_BYTES", 100_000)
    monkeypatch.setattr(async_client, "MAX_ANSWER_BYTES", 100_000)
    for size, is_allowed in ((90_000, True), (110_000, False)):
        body = b"{}".ljust(size)
        sent = gzip.compress(body) if is_packed else body
        head = GZIP % len(sent) if is_packed else HEAD + b"Content-Length: %d\r\n\r\n" % size
        with dripping_server(head + sent, b"") as url:
            if is_allowed:
                assert read(url) == {}
            else:
                with pytest.raises(BackendError, match="too long"):
                    read(url)


def test_event_of_a_watch_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_MAX_EVENT_BYTES", 100_000)
    with dripping_server(HEAD + b"\r\n", b" " * 50_000) as url, pytest.raises(BackendError, match="too long"):
        list(Api(access_to(url)).watch("/api/v1/pods", "1", seconds=60))


def test_list_has_a_limited_number_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_MAX_PAGES", 3)
    body = b'{"metadata": {"continue": "on"}}'
    with dripping_server(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body, b"") as url:
        pages = Api(access_to(url)).pages("/api/v1/pods")
        assert [len(next(pages)) for _ in range(3)] == [1, 1, 1]
        with pytest.raises(BackendError, match="no end"):
            next(pages)


@pytest.fixture
def dripping(simulated: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Cluster]]:
    """As many clusters with a dripping server as there are slots."""
    certificates = Certificates(tmp_path / "certificates")
    certificates.make()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates.certificate, certificates.key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
    (tmp_path / "kubeconfigs").mkdir()
    with dripping_server(*DRIPPING_BODIES["body"], tls) as url:
        found = []
        for number in range(SLOTS):
            name = f"dripping-{number}"
            (tmp_path / "kubeconfigs" / name).write_text(kubeconfig(url, name))
            made = clusters.create(
                name=name, kind="kubernetes", config={"kubeconfig": name}, actor=PLATFORM, now=clock.now()
            )
            found.append(made)
        yield found
        for cluster in found:
            backend_of(cluster).close()


@pytest.mark.thorough  # silent servers use the same time limits
def test_dripping_servers_leave_slots_for_a_cluster_that_answers(simulated: World, dripping: list[Cluster]) -> None:
    with ControlSlots([simulated.cluster]):
        alone = [seconds_until_complete(simulated, f"alone-{number}") for number in range(3)]
    with ControlSlots([*dripping, simulated.cluster]):
        time.sleep(2)  # all of them have been tried
        beside = [seconds_until_complete(simulated, f"beside-{number}") for number in range(5)]
    assert max(beside) < max(alone) + 25, f"{beside}, alone {alone}; an answer may take 20 s"
