"""The Python client: exceptions, retries, waiting, and a job from submission to its last log line."""

import json
import ssl
from collections.abc import Callable, Iterator

import httpx2
import pytest
from tests.cli.conftest import Console, console, world

from hekla.client import (
    AuthenticationError,
    BadRequestError,
    Client,
    ConflictError,
    NotConfiguredError,
    NotFoundError,
    NotHeklaError,
    PermissionDeniedError,
    RateLimitError,
    ResponseError,
    ServerError,
    UnreachableError,
    WaitTimeoutError,
)
from hekla.client import transport as transports

__all__ = ["console", "world"]

Handler = httpx2.Response | Exception
JOB = {"uid": "9b0dc0f2-0000-4000-8000-000000000000", "name": "train", "phase": "pending", "pods": []}
SPEC = {"name": "train", "tasks": [{"name": "main", "command": ["true"]}]}
local = pytest.mark.parametrize("world", ["local"], indirect=True)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between retries, which take no time here."""
    found = list[float]()
    monkeypatch.setattr(transports, "_FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(transports, "_sleep", found.append)
    return found


class Scripted:
    """A console with scripted answers that records the requests."""

    def __init__(self, *answers: Handler) -> None:
        self.answers, self.requests = iter(answers), list[httpx2.Request]()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self) -> Client:
        return Client("http://hekla.example", "hk_x", transport=httpx2.MockTransport(self))


def problem(status: int, **more: object) -> httpx2.Response:
    headers = {"Content-Type": "application/problem+json", "Retry-After": "7"}
    return httpx2.Response(status, json={"detail": "No.", "code": "no", "status": status, **more}, headers=headers)


REFUSALS = [
    (400, BadRequestError),
    (401, AuthenticationError),
    (403, PermissionDeniedError),
    (404, NotFoundError),
    (409, ConflictError),
    (429, RateLimitError),
]


@pytest.mark.parametrize(("status", "kind"), [*REFUSALS, (415, ResponseError)])
def test_each_status_has_its_exception(status: int, kind: type[ResponseError]) -> None:
    with pytest.raises(kind) as raised:
        Scripted(*[problem(status)] * 20).client().nodes()
    assert (raised.value.status, raised.value.detail, raised.value.code) == (status, "No.", "no")
    assert getattr(raised.value, "retry_after", None) == (7 if kind is RateLimitError else None)


def test_exception_lists_field_errors() -> None:
    answer = problem(
        400, errors=[{"path": "tasks.0.replicas", "message": "Too many."}, {"path": "", "message": "Odd."}]
    )
    with pytest.raises(BadRequestError) as raised:
        Scripted(answer).client().submit(SPEC)
    assert [(one.path, one.message) for one in raised.value.errors] == [("tasks.0.replicas", "Too many."), ("", "Odd.")]
    assert str(raised.value) == "No.\n  tasks.0.replicas: Too many.\n  Odd."


TRANSIENT: list[Handler] = [
    httpx2.Response(502),
    httpx2.Response(503),
    httpx2.ConnectError("closed"),
    httpx2.ReadTimeout("late"),
    httpx2.RemoteProtocolError("cut"),
]


@pytest.mark.parametrize("first", TRANSIENT, ids=str)
def test_transient_errors_are_retried(first: Handler) -> None:
    console = Scripted(first, httpx2.Response(200, json=[]))
    assert console.client().nodes() == []
    assert len(console.requests) == 2


def test_submission_is_retried_with_the_same_key() -> None:
    console = Scripted(httpx2.ReadTimeout("late"), httpx2.Response(201, json={"job": JOB, "warnings": []}))
    assert console.client().submit(SPEC)["job"]["name"] == "train"
    first, second = (request.headers["Idempotency-Key"] for request in console.requests)
    assert first == second
    assert [json.loads(request.content) for request in console.requests] == [SPEC, SPEC]


@pytest.mark.parametrize("act", [Client.abort, Client.restart, Client.delete_job, lambda c, j: c.set_priority(j, 1)])
def test_unsafe_requests_are_not_retried(act: Callable[[Client, str], object]) -> None:
    console = Scripted(httpx2.ReadTimeout("late"))
    with pytest.raises(UnreachableError):
        act(console.client(), JOB["uid"])
    assert len(console.requests) == 1


def test_server_errors_and_other_servers_are_not_retried() -> None:
    for answer, kind in ((httpx2.Response(500), ServerError), (httpx2.Response(200, text="<html>"), NotHeklaError)):
        console = Scripted(answer)
        with pytest.raises(kind):
            console.client().nodes()
        assert len(console.requests) == 1


def test_retries_are_limited() -> None:
    console = Scripted(*[httpx2.ConnectError("closed")] * 9)
    with pytest.raises(UnreachableError, match="Cannot connect"):
        console.client().nodes()
    assert len(console.requests) == 4


def limited(retry_after: str) -> httpx2.Response:
    headers = {"Content-Type": "application/problem+json", "Retry-After": retry_after}
    return httpx2.Response(429, json={"detail": "No.", "code": "throttled", "status": 429}, headers=headers)


@pytest.mark.parametrize("act", [Client.nodes, lambda client: client.abort(JOB["uid"])])
def test_a_refusal_for_too_many_requests_is_waited_out(act: Callable[[Client], object], pauses: list[float]) -> None:
    """Also of a change, which the server did not begin."""
    console = Scripted(limited("7"), limited("60"), httpx2.Response(200, json=[]))
    assert act(console.client()) == []
    assert pauses == [7, 60]


def test_waits_for_the_limit_are_bounded(pauses: list[float]) -> None:
    console = Scripted(*[limited("50")] * 9)
    with pytest.raises(RateLimitError):
        console.client().nodes()
    assert pauses == [50, 50]
    with pytest.raises(RateLimitError):
        Scripted(limited("3600")).client().nodes()


def test_limit_without_seconds_is_waited_out(pauses: list[float]) -> None:
    console = Scripted(limited("Wed, 21 Oct 2026 07:28:00 GMT"), httpx2.Response(200, json=[]))
    assert console.client().nodes() == []
    assert pauses == [1]


def test_wait_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[Handler] = (httpx2.Response(200, json=JOB) for _ in range(100))
    with pytest.raises(WaitTimeoutError, match="train is pending"):
        Scripted(*answers).client().wait(JOB, timeout=0.3)


def test_default_console_and_token(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("HEKLA_SERVER", "far.example:8000")
    monkeypatch.setenv("HEKLA_TOKEN", "hk_far")
    assert Client().server.url == "http://far.example:8000"
    monkeypatch.delenv("HEKLA_TOKEN")
    monkeypatch.setenv("HEKLA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(NotConfiguredError, match="no token for http://far"):
        Client()


@pytest.mark.parametrize(("url", "loads"), [("http://127.0.0.1:1", False), ("https://hekla.example", True)])
def test_certificates_are_loaded_only_for_tls(url: str, loads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    load = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *a, **kw: (loaded.append(a), load(*a, **kw))[1])
    Client(url, "t").close()
    assert bool(loaded) == loads


@local
def test_submit_follow_logs_and_wait(console: Console) -> None:
    command = ["sh", "-c", "echo begins; sleep 1; echo ends"]
    spec = {"name": "talk", "tasks": [{"name": "main", "command": command, "resources": {"cpu": "100m"}}]}
    with Client(console.url, console.token) as client:
        job = client.submit(spec, key="one")["job"]
        assert client.submit(spec, key="one")["job"]["uid"] == job["uid"]
        assert list(client.logs(client.wait("talk", until={"running"}), follow=True)) == ["begins", "ends"]
        assert client.wait(job, timeout=30)["phase"] == "completed"
        assert [job["name"] for job in client.jobs(phase="completed")] == ["talk"]
        with pytest.raises(LookupError, match="main-0"):
            client.logs("talk", "other")
        with pytest.raises(NotFoundError, match="Unknown job “nothing”"):
            client.job("nothing")
