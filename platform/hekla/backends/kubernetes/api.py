"""Blocking requests to an API server: plain JSON in and out, through the official client's connections.

Decoding into the client's objects costs more than all the rest, so that is left to the few requests where it does not
matter (`Api.call`). A status says what the server refuses. A server that cannot be reached, or is too busy, is a
BackendError, and the caller's next cycle tries again.
"""

import contextlib
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import orjson
import urllib3
from kubernetes.client import ApiClient, ApiException

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import instruments
from hekla.backends.kubernetes.access import Access
from hekla.backends.kubernetes.login import Login

Json = dict[str, Any]
T = TypeVar("T")
OK_BELOW, BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 400, 400, 401, 403, 404
CONFLICT, GONE, INVALID = 409, 410, 422
_TIMEOUT = urllib3.Timeout(connect=5.0, read=20.0)
_NODE_TIMEOUT = urllib3.Timeout(connect=4.0, read=4.0)
_BOOKMARKS_WITHIN_SECONDS = 150.0
"""A server sends the bookmarks that it was asked for each minute."""
_PIECE_BYTES = 1024 * 1024
_GATHERING_SECONDS = 0.02
"""Events that come so soon after others are read together with those that follow."""
MERGE = "application/merge-patch+json"


class ApiError(BackendError):
    """The server answered and refused."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or reason or f"The API server answers with {status}")
        self.status, self.reason = status, reason


class Api:
    """One API server. Any number of threads may use it at once."""

    def __init__(self, access: Access, *, timeout: urllib3.Timeout = _TIMEOUT) -> None:
        self._access, self._timeout = access, timeout
        self._connected = access.login, access.login.new_client()
        self._watches: set[urllib3.BaseHTTPResponse] = set()
        self._no_more_watches = threading.Event()

    @property
    def client(self) -> ApiClient:
        """The official client, for `call`."""
        return self._connection()[1]

    def call(self, request: Callable[..., T], *args: object) -> T:
        """A typed request of the official client. Raises ApiError, BackendError."""
        login, timeout = self._connected[0], (self._timeout.connect_timeout, self._timeout.read_timeout)
        try:
            return request(*args, _request_timeout=timeout)
        except ApiException as error:
            self._check_login(error.status, login)
            raise (refusal(error.status, error.body or b"") if error.status else unreachable(error)) from error
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise unreachable(error) from error

    def get(self, path: str, **params: str | int) -> Json:
        """An object, or a list of them."""
        return self._json("GET", path, params=params)

    def pages(self, path: str, **params: str | int) -> Iterator[Json]:
        """A long list in parts, all as of one version."""
        query: dict[str, str | int] = {"limit": 1000, **params}
        while True:
            page = self._json("GET", path, params=query)
            yield page
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return

    def text(self, path: str, **params: str | int) -> bytes:
        """What is no JSON, such as a log. It comes from a node that may be dead, so the time-out is short."""
        return self._response("GET", path, params=params, timeout=_NODE_TIMEOUT).data

    def create(self, path: str, body: Json, **params: str | int) -> Json:
        """A new object. Raises ApiError with CONFLICT where there is one of that name."""
        return self._json("POST", path, body=body, params=params or None)

    def patch(self, path: str, body: Json) -> Json:
        """A change to some fields of an object."""
        return self._json("PATCH", path, body=body, content_type=MERGE)

    def delete(self, path: str, *, grace_seconds: int | None = None, **params: str | int) -> None:
        """An object, or all that the parameters say; what is not there needs no deleting."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        try:
            self._json("DELETE", path, params=params, body={"propagationPolicy": "Background", **options})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def watch(self, path: str, version: str, *, seconds: int, **params: str | int) -> Iterator[Json]:
        """Events of a list after that version, for so long at most. Raises ApiError with GONE, BackendError."""
        query: dict[str, str | int] = {
            "watch": 1,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }
        timeout = urllib3.Timeout(connect=5.0, read=_BOOKMARKS_WITHIN_SECONDS)
        try:
            response = self._send("GET", path, {**query, **params}, {}, timeout=timeout, preload_content=False)
            with self._watching(response):
                if response.status >= OK_BELOW:
                    raise refusal(response.status, response.data)
                for line in _lines(_gathered(response)):
                    yield _event(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError) as error:
            raise unreachable(error) from error

    def end_watches(self) -> None:
        """Those that wait see the end of their connection now, and none begins any more.

        They close it themselves: closed under them, its number would be given to another connection, say one to the
        database, from which they would then read.
        """
        self._no_more_watches.set()
        for response in list(self._watches):
            with contextlib.suppress(OSError, ValueError):
                response.shutdown()

    def close(self) -> None:
        """Close all connections. No request may be under way."""
        self._connected[1].close()

    def _connection(self) -> tuple[Login, ApiClient]:
        """Another one after the access has signed in anew."""
        login = self._access.login
        if login is not self._connected[0]:
            self._connected = login, login.new_client()
        return self._connected

    @contextlib.contextmanager
    def _watching(self, response: urllib3.BaseHTTPResponse) -> Iterator[None]:
        self._watches.add(response)
        try:
            if self._no_more_watches.is_set():
                raise OSError("There are no watches any more")
            yield
        finally:
            self._watches.discard(response)
            response.close()

    def _json(self, method: str, path: str, **more: Any) -> Json:  # noqa: ANN401
        try:
            found: Json = orjson.loads(self._response(method, path, **more).data)
        except ValueError as error:
            raise unreachable(error) from error
        return found

    def _response(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
        timeout: urllib3.Timeout | None = None,
    ) -> urllib3.BaseHTTPResponse:
        instruments.count(method, path)
        headers = {"Accept": "application/json, */*", "Accept-Encoding": "gzip"}
        content = None if body is None else orjson.dumps(body)
        if content is not None:
            headers["Content-Type"] = content_type
        try:
            response = self._send(method, path, params, headers, body=content, timeout=timeout or self._timeout)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise unreachable(error) from error
        if response.status >= OK_BELOW:
            raise refusal(response.status, response.data)
        return response

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None,
        headers: Mapping[str, str],
        *,
        timeout: urllib3.Timeout,
        **more: Any,  # noqa: ANN401
    ) -> urllib3.BaseHTTPResponse:
        """Once, and only there: what failed may have been done all the same."""
        headers = {**headers, **self._access.header()}
        login, client = self._connection()
        url = f"{login.server}{path}" + (f"?{urlencode(params)}" if params else "")
        response: urllib3.BaseHTTPResponse = client.rest_client.pool_manager.request(
            method, url, headers=headers, timeout=timeout, retries=False, redirect=False, **more
        )
        self._check_login(response.status, login)
        return response

    def _check_login(self, status: int, login: Login) -> None:
        if status == UNAUTHORIZED:
            self._access.reject(login)


def _gathered(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """To wake a thread for each of a thousand events costs far more than to read them. So once it has read all that
    came, it pauses a moment before it waits for more.
    """
    arrivals = select.poll()
    arrivals.register(response, select.POLLIN)
    for piece in iter(lambda: response.read1(_PIECE_BYTES), b""):
        yield piece
        if not arrivals.poll(0):
            time.sleep(_GATHERING_SECONDS)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut at line feeds only: other line ends may be inside of an object."""
    unfinished: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(b"\n")
        unfinished.append(first)
        for following in more:
            yield b"".join(unfinished)
            unfinished = [following]
    if rest := b"".join(unfinished):
        yield rest


def _event(line: bytes) -> Json:
    """An error comes inside of a stream that began well."""
    event: Json = orjson.loads(line)
    if event["type"] == "ERROR":
        status = event["object"]
        raise ApiError(int(status.get("code") or 0), str(status.get("reason", "")), str(status.get("message", "")))
    return event


def refusal(status: int, content: bytes | str) -> ApiError:
    """The error for a response with this status and content."""
    try:
        body = orjson.loads(content)
    except ValueError:
        body = {}
    found = body if isinstance(body, dict) else {}
    return ApiError(status, str(found.get("reason", "")), str(found.get("message", ""))[:1000])


def unreachable(error: Exception) -> BackendError:
    """The error for a request without a usable response."""
    return BackendError(f"The API server does not answer: {type(error).__name__}: {str(error)[:200]}")
