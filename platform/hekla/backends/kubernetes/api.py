"""Blocking requests to an API server: plain JSON, over the official client's connections.

Decoding into the client's typed objects costs more than everything else, so only a few rare requests do it
(`Api.call`). An error response raises ApiError with its status. If the server does not answer, BackendError is raised,
and the caller tries again in its next cycle.
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
from hekla.backends.kubernetes.answer_limits import AnswerTooLong, unpack
from hekla.backends.kubernetes.login import Login

Json = dict[str, Any]
T = TypeVar("T")
OK_BELOW, BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 400, 400, 401, 403, 404
CONFLICT, GONE, INVALID = 409, 410, 422
_TIMEOUT = urllib3.Timeout(connect=5.0, read=20.0)
"""The read time-out is for the whole answer; see `answer_limits`."""
_NODE_TIMEOUT = urllib3.Timeout(connect=4.0, read=4.0)
_BOOKMARKS_WITHIN_SECONDS = 150.0
"""The read time-out of a watch: a server sends the requested bookmarks every minute."""
_PIECE_BYTES = 1024 * 1024
_MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Of one event of a watch. A server stores objects of at most some million bytes."""
_EVENT_SECONDS = 20.0
"""From the first byte of an event to its last one."""
_MAX_PAGES = 10_000
_GATHERING_SECONDS = 0.02
"""Events that arrive within this time after others are read together."""
MERGE = "application/merge-patch+json"


class ApiError(BackendError):
    """An error response of the server."""

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
        """Make a typed request with the official client. Raises ApiError, BackendError."""
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
        """The pages of a long list, all as of one version."""
        query: dict[str, str | int] = {"limit": 1000, **params}
        for _number in range(_MAX_PAGES):
            page = self._json("GET", path, params=query)
            yield page
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return
        raise BackendError("The API server's list has no end")

    def text(self, path: str, **params: str | int) -> bytes:
        """A response that is not JSON, for example a log. The node may be dead, so the time-out is short."""
        return self._response("GET", path, params=params, timeout=_NODE_TIMEOUT)

    def create(self, path: str, body: Json, **params: str | int) -> Json:
        """Create an object. Raises ApiError with CONFLICT if the name exists."""
        return self._json("POST", path, body=body, params=params or None)

    def patch(self, path: str, body: Json) -> Json:
        """Change some fields of an object by a merge patch."""
        return self._json("PATCH", path, body=body, content_type=MERGE)

    def delete(self, path: str, *, grace_seconds: int | None = None, **params: str | int) -> None:
        """Delete an object, or all that the parameters select. No effect if it does not exist."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        try:
            self._json("DELETE", path, params=params, body={"propagationPolicy": "Background", **options})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def watch(self, path: str, version: str, *, seconds: int, **params: str | int) -> Iterator[Json]:
        """Events of a list after this version, for at most `seconds`. Raises ApiError with GONE, BackendError."""
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
        """End all watches now, and allow no new ones.

        Their threads close the connections. If we closed one here, the system could reuse its file descriptor, for
        example for a database connection, and the thread would read from that.
        """
        self._no_more_watches.set()
        for response in list(self._watches):
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # RuntimeError: it has just ended by itself
                response.shutdown()

    def close(self) -> None:
        """Close all connections; those of running requests close when these end."""
        client = self._connected[1]
        client.close()
        client.rest_client.pool_manager.clear()

    def _connection(self) -> tuple[Login, ApiClient]:
        """The present login and its client; both are new after the access has signed in again."""
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
            found: Json = orjson.loads(self._response(method, path, **more))
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
    ) -> bytes:
        instruments.count(method, path)
        sent_at = self._access.silence.check()
        headers = {"Accept": "application/json, */*", "Accept-Encoding": "gzip"}
        content = None if body is None else orjson.dumps(body)
        if content is not None:
            headers["Content-Type"] = content_type
        try:
            response = self._send(method, path, params, headers, body=content, timeout=timeout or self._timeout)
            found = unpack(response)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if timeout is None and _is_timeout(error):
                self._access.silence.record_timeout(sent_at)
            raise unreachable(error) from error
        self._access.silence.record_answer()
        if response.status >= OK_BELOW:
            raise refusal(response.status, found)
        return found

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
        """Send the request once, without retries or redirects: a failed request may still have had its effect."""
        headers = {**headers, **self._access.header()}
        login, client = self._connection()
        url = f"{login.server}{path}" + (f"?{urlencode(params)}" if params else "")
        response: urllib3.BaseHTTPResponse = client.rest_client.pool_manager.request(
            method, url, headers=headers, timeout=timeout, retries=False, redirect=False, decode_content=False, **more
        )
        self._check_login(response.status, login)
        return response

    def _check_login(self, status: int, login: Login) -> None:
        if status == UNAUTHORIZED:
            self._access.reject(login)


def _is_timeout(error: Exception) -> bool:
    """Whether no answer came in time. A refused connection is an answer, although urllib3 counts it as a time-out."""
    is_refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    return isinstance(error, urllib3.exceptions.TimeoutError) and not is_refused


def _gathered(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The data of the response, in pieces. After reading all available data, it pauses before it waits for more:
    waking a thread for each of a thousand events costs far more than reading them.
    """
    arrivals = select.poll()
    arrivals.register(response, select.POLLIN)
    for piece in iter(lambda: response.read1(_PIECE_BYTES), b""):
        yield piece
        if not arrivals.poll(0):
            time.sleep(_GATHERING_SECONDS)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Split at line feeds only: other line ends may be inside an object. Raises AnswerTooLong, TimeoutError."""
    unfinished: list[bytes] = []
    size, began_at = 0, 0.0
    for piece in pieces:
        first, *more = piece.split(b"\n")
        unfinished.append(first)
        for following in more:
            yield b"".join(unfinished)
            unfinished, size = [following], 0
        began_at = began_at if size else time.monotonic()
        size += len(unfinished[-1])
        if size > _MAX_EVENT_BYTES:
            raise AnswerTooLong("An event of the watch is too long")
        if time.monotonic() - began_at > _EVENT_SECONDS:
            raise TimeoutError("An event of the watch takes too long")
    if rest := b"".join(unfinished):
        yield rest


def _event(line: bytes) -> Json:
    """The event in this line. Raises ApiError for an error event, which may follow a successful start."""
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
