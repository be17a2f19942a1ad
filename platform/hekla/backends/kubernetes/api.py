"""Requests to an API server: plain JSON in and out, since decoding into objects costs more than all else.

What the server refuses is told by its status; where it cannot be reached, or asks for timeout, that is a BackendError
and the caller's next turn tries again.
"""

import contextlib
import select
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import instruments
from hekla.backends.kubernetes.access import Access

Json = dict[str, Any]
OK_BELOW, BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, INVALID = 400, 400, 403, 404, 409, 410, 422
_TIMEOUT = urllib3.Timeout(connect=5.0, read=20.0)
_NODE_TIMEOUT = urllib3.Timeout(connect=4.0, read=4.0)
_BOOKMARKS_WITHIN_SECONDS = 150.0
"""A server that shows the signs of life it was asked for does so each minute."""
_PIECE_BYTES = 1024 * 1024
_GATHERING_SECONDS = 0.02
"""What happens so soon after something else is heard of together with what follows."""
MERGE = "application/merge-patch+json"


class ApiError(BackendError):
    """The server answered and refused."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or reason or f"The API server answers with {status}")
        self.status, self.reason = status, reason


class Api:
    """One API server. Any number of threads may ask at once."""

    def __init__(self, access: Access, *, timeout: urllib3.Timeout = _TIMEOUT) -> None:
        self._access, self._timeout = access, timeout
        self._connections = urllib3.PoolManager(maxsize=32, ssl_context=access.context)
        self._watched: set[urllib3.BaseHTTPResponse] = set()
        self._watching_ends = threading.Event()

    def get(self, path: str, **params: str | int) -> Json:
        """An object, or a list of them."""
        return self._sent("GET", path, params=params)

    def pages(self, path: str, **params: str | int) -> Iterator[Json]:
        """A long list in parts, all as of one version."""
        asked: dict[str, str | int] = {"limit": 1000, **params}
        while True:
            page = self._sent("GET", path, params=asked)
            yield page
            asked["continue"] = page["metadata"].get("continue", "")
            if not asked["continue"]:
                return

    def text(self, path: str, **params: str | int) -> bytes:
        """What is no JSON, such as a log. It comes from a node that may be dead, so the time-out is short."""
        return self._answer("GET", path, params=params, timeout=_NODE_TIMEOUT).data

    def create(self, path: str, body: Json, **params: str | int) -> Json:
        """A new object. Raises ApiError with CONFLICT where there is one of that name."""
        return self._sent("POST", path, body=body, params=params or None)

    def patch(self, path: str, body: Json) -> Json:
        """A change to some fields of an object."""
        return self._sent("PATCH", path, body=body, content_type=MERGE)

    def delete(self, path: str, *, grace_seconds: int | None = None, **params: str | int) -> None:
        """An object, or all that the parameters say; what is not there needs no deleting."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        try:
            self._sent("DELETE", path, params=params, body={"propagationPolicy": "Background", **options})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def watch(self, path: str, version: str, *, seconds: int, **params: str | int) -> Iterator[Json]:
        """What happens to a list after that version, for so long at most. Raises ApiError with GONE, BackendError."""
        asked: dict[str, str | int] = {
            "watch": 1,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }
        timeout = urllib3.Timeout(connect=5.0, read=_BOOKMARKS_WITHIN_SECONDS)
        try:
            answer = self._asked("GET", path, {**asked, **params}, timeout=timeout, preload_content=False)
            with self._followed(answer):
                if answer.status >= OK_BELOW:
                    raise refusal(answer.status, answer.data)
                for line in _lines(_gathered(answer)):
                    yield _event(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError) as error:
            raise unreachable(error) from error

    def end_watches(self) -> None:
        """Those that wait hear the end of their connection now, and none begins any more.

        They close it themselves: closed under them, its number would be given to another connection, say one to the
        database, from which they would then read.
        """
        self._watching_ends.set()
        for answer in list(self._watched):
            with contextlib.suppress(OSError, ValueError):
                answer.shutdown()

    def close(self) -> None:
        """Let go of all connections. Nobody may be asking at this moment."""
        self._connections.clear()

    @contextlib.contextmanager
    def _followed(self, answer: urllib3.BaseHTTPResponse) -> Iterator[None]:
        self._watched.add(answer)
        try:
            if self._watching_ends.is_set():
                raise OSError("Nobody watches any more")
            yield
        finally:
            self._watched.discard(answer)
            answer.close()

    def _sent(self, method: str, path: str, **more: Any) -> Json:  # noqa: ANN401
        try:
            found: Json = orjson.loads(self._answer(method, path, **more).data)
        except ValueError as error:
            raise unreachable(error) from error
        return found

    def _answer(
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
            answer = self._asked(method, path, params, headers, body=content, timeout=timeout or self._timeout)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise unreachable(error) from error
        if answer.status >= OK_BELOW:
            raise refusal(answer.status, answer.data)
        return answer

    def _asked(
        self,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: urllib3.Timeout,
        **more: Any,  # noqa: ANN401
    ) -> urllib3.BaseHTTPResponse:
        """Once, and only there: what failed may have been done all the same."""
        url = f"{self._access.server}{path}" + (f"?{urlencode(params)}" if params else "")
        headers = {**(headers or {}), **self._access.header()}
        return self._connections.request(
            method, url, headers=headers, timeout=timeout, retries=False, redirect=False, **more
        )


def _gathered(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """A thread that is woken for each of a thousand events costs far more than their reading: once it has read all that
    came, it rests a moment before it waits for more.
    """
    arrivals = select.poll()
    arrivals.register(answer, select.POLLIN)
    for piece in iter(lambda: answer.read1(_PIECE_BYTES), b""):
        yield piece
        if not arrivals.poll(0):
            time.sleep(_GATHERING_SECONDS)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut at line feeds only: what else ends a line in a text may stand inside of an object."""
    begun: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(b"\n")
        begun.append(first)
        for following in more:
            yield b"".join(begun)
            begun = [following]
    if rest := b"".join(begun):
        yield rest


def _event(line: bytes) -> Json:
    """An error comes inside of a stream that began well."""
    event: Json = orjson.loads(line)
    if event["type"] == "ERROR":
        told = event["object"]
        raise ApiError(int(told.get("code") or 0), str(told.get("reason", "")), str(told.get("message", "")))
    return event


def refusal(status: int, content: bytes) -> ApiError:
    """The error that such an answer is."""
    try:
        told = orjson.loads(content)
    except ValueError:
        told = {}
    found = told if isinstance(told, dict) else {}
    return ApiError(status, str(found.get("reason", "")), str(found.get("message", ""))[:1000])


def unreachable(error: Exception) -> BackendError:
    """There was no answer that says anything."""
    return BackendError(f"The API server does not answer: {type(error).__name__}: {str(error)[:200]}")
