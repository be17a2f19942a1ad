"""Requests to an API server: plain JSON in and out, since decoding into objects costs more than all else.

What the server refuses is told by its status; where it cannot be reached, or asks for patience, that is a BackendError
and the caller's next turn tries again.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import instruments
from hekla.backends.kubernetes.access import Access

Json = dict[str, Any]
OK_BELOW, BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, INVALID = 400, 400, 403, 404, 409, 410, 422
_PATIENCE = httpx.Timeout(20.0, connect=5.0)
_PATIENCE_WITH_MACHINES = httpx.Timeout(4.0)
_BOOKMARKS_WITHIN_SECONDS = 150.0
"""A server that shows the signs of life it was asked for does so each minute."""
MERGE = "application/merge-patch+json"


class ApiError(BackendError):
    """The server answered and refused."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or reason or f"The API server answers with {status}")
        self.status, self.reason = status, reason


class Api:
    """One API server. Any number of threads may ask at once."""

    def __init__(self, access: Access, *, patience: httpx.Timeout = _PATIENCE) -> None:
        self._access, self._patience = access, patience
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=32)
        self._client = httpx.Client(
            base_url=access.server, verify=access.context, timeout=patience, limits=limits, trust_env=False
        )
        self._watched: set[socket.socket] = set()
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
        """What is no JSON, such as a log: it comes from a machine that may be dead, so nobody waits long for it."""
        return self._answer("GET", path, params=params, timeout=_PATIENCE_WITH_MACHINES).content

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
        timeout = httpx.Timeout(20.0, read=_BOOKMARKS_WITHIN_SECONDS)
        try:
            with self._client.stream(
                "GET", path, params={**asked, **params}, headers=self._access.header(), timeout=timeout
            ) as answer:
                if answer.status_code >= OK_BELOW:
                    answer.read()
                    raise refusal(answer.status_code, answer.content)
                with self._followed(answer):
                    for line in _lines(answer.iter_bytes()):
                        yield _event(line)
        except (httpx.HTTPError, OSError, RuntimeError, ValueError, LookupError, TypeError) as error:
            raise unreachable(error) from error

    def end_watches(self) -> None:
        """Those that wait hear the end of their connection now, and none begins any more.

        They close it themselves: closed under them, its number would be given to another connection, say one to the
        database, from which they would then read.
        """
        self._watching_ends.set()
        for line in list(self._watched):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of all connections. Nobody may be asking at this moment."""
        self._client.close()

    @contextlib.contextmanager
    def _followed(self, answer: httpx.Response) -> Iterator[None]:
        line = answer.extensions["network_stream"].get_extra_info("socket")
        self._watched.add(line)
        try:
            if self._watching_ends.is_set():
                raise OSError("Nobody watches any more")
            yield
        finally:
            self._watched.discard(line)

    def _sent(self, method: str, path: str, **more: Any) -> Json:  # noqa: ANN401
        try:
            found: Json = json.loads(self._answer(method, path, **more).content)
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
        timeout: httpx.Timeout | None = None,
    ) -> httpx.Response:
        instruments.count(method, path)
        headers = {"Accept": "application/json, */*"}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = content_type
        try:
            headers |= self._access.header()
            answer = self._client.request(
                method, path, params=params, content=content, headers=headers, timeout=timeout or self._patience
            )
        except (httpx.HTTPError, OSError, RuntimeError, ValueError) as error:  # RuntimeError: it was closed meanwhile
            raise unreachable(error) from error
        if answer.status_code >= OK_BELOW:
            raise refusal(answer.status_code, answer.content)
        return answer


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
    event: Json = json.loads(line)
    if event["type"] == "ERROR":
        told = event["object"]
        raise ApiError(int(told.get("code") or 0), str(told.get("reason", "")), str(told.get("message", "")))
    return event


def refusal(status: int, content: bytes) -> ApiError:
    """The error that such an answer is."""
    try:
        told = json.loads(content)
    except ValueError:
        told = {}
    found = told if isinstance(told, dict) else {}
    return ApiError(status, str(found.get("reason", "")), str(found.get("message", ""))[:1000])


def unreachable(error: Exception) -> BackendError:
    """There was no answer that says anything."""
    return BackendError(f"The API server does not answer: {type(error).__name__}: {str(error)[:200]}")
