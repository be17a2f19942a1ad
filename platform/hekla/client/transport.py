"""HTTP requests to the server: JSON documents in and out; each failure has its own exception."""

import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from hekla.client.credentials import ServerCredentials
from hekla.client.errors import (
    NotConfiguredError,
    NotHeklaError,
    RateLimitError,
    ServerError,
    UnreachableError,
    error_from_response,
)
from hekla.client.texts import language

TIMEOUT_SECONDS = 40.0
RETRIES = 3
LIMIT_SECONDS = 120.0
"""The longest wait for a limit of requests, which counts by the minute."""
_CONNECT_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 0.5
_PASSING = {502, 503, 504}
"""Status codes of a proxy while the server behind it restarts."""
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_PAGE = 200

_sleep = time.sleep

Json = Any
"""A JSON value."""


class Transport:
    """A connection to one server. GET requests, and requests with an idempotency key, are retried after a pause.

    Every request that is refused because of too many requests (429) is sent again after the seconds that the server
    names, in total at most `limit_seconds`. `on_limit` is told the seconds of each wait.
    """

    def __init__(
        self,
        server: ServerCredentials,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx2.BaseTransport | None = None,
        limit_seconds: float = LIMIT_SECONDS,
        on_limit: Callable[[float], None] = lambda seconds: None,  # noqa: ARG005
    ) -> None:
        self.server, self._retries = server, retries
        self._limit_seconds, self._on_limit = limit_seconds, on_limit
        headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json"}
        headers |= {"Accept-Language": language()} if language() else {}
        try:
            self._http = httpx2.Client(
                base_url=f"{server.url}/api/v1/",
                headers=headers,
                timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
                trust_env=urlsplit(server.url).hostname not in LOOPBACK,  # no proxy for this machine itself
                transport=transport,
                verify=_certificates(server.url),
            )
        except (httpx2.InvalidURL, UnicodeEncodeError, ValueError) as error:
            raise NotConfiguredError(f"“{server.url}” or its token cannot be used: {error}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def get(self, path: str, /, **query: Json) -> Json:
        """The document at a path."""
        return self._send("GET", path, params=_without_none(query))

    def read_bytes(self, path: str, /, **query: Json) -> Iterator[bytes]:
        """The file at a path, in chunks. It is not retried, and ends with UnreachableError if it is cut."""
        try:
            with self._http.stream("GET", path, params=query, headers={"Accept": "application/octet-stream"}) as answer:
                if not answer.is_success:
                    answer.read()
                    self._read(answer)
                yield from answer.iter_bytes()
        except httpx2.HTTPError as error:
            raise UnreachableError(f"The connection to {self.server.url} failed: {error}.") from error

    def post(self, path: str, document: Json, *, key: str = "", **query: Json) -> Json:
        """Send a document and return the response. Requests with the same key have an effect only once."""
        return self._send("POST", path, key=key, json=document, params=_without_none(query))

    def post_yaml(self, path: str, text: str | bytes, *, key: str = "", **query: Json) -> Json:
        """Send manifests and return the response."""
        return self._post_as("application/yaml", path, text, query, key=key)

    def post_csv(self, path: str, table: str | bytes, **query: Json) -> Json:
        """Send a table and return the response."""
        return self._post_as("text/csv", path, table, query)

    def patch(self, path: str, document: Json, **query: Json) -> Json:
        """Send changes and return the response."""
        return self._send("PATCH", path, json=document, params=_without_none(query))

    def put(self, path: str, document: Json) -> Json:
        """Replace the resource and return the response."""
        return self._send("PUT", path, json=document)

    def begin_upload(self, path: str, size: int, metadata: Mapping[str, str], **query: Json) -> Json:
        """Announce a file of `size` bytes (tus 1.0.0), and return the upload."""
        pairs = ",".join(f"{name} {b64encode(value.encode()).decode()}" for name, value in metadata.items())
        headers = {"Upload-Length": str(size), "Upload-Metadata": pairs}
        return self._send("POST", path, headers=headers, params=_without_none(query))

    def write_piece(self, path: str, offset: int, data: bytes) -> None:
        """Write a piece of an upload at `offset`."""
        headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}
        self._send("PATCH", path, content=data, headers=headers)

    def delete(self, path: str) -> None:
        """Delete the resource."""
        self._send("DELETE", path)

    def each(self, path: str, *, limit: int = _PAGE, **query: Json) -> Iterator[Json]:
        """The entries of a paginated list. Each page is requested when it is reached."""
        page = self.get(path, limit=limit, **query)
        yield from page["results"]
        while page["next"]:
            page = self._send("GET", page["next"])
            yield from page["results"]

    def pages(self, path: str, most: int, **query: Json) -> list[Json]:
        """The first `most` entries of a paginated list."""
        return list(islice(self.each(path, limit=min(most, _PAGE), **query), most))

    def _post_as(self, kind: str, path: str, text: str | bytes, query: Mapping[str, Json], *, key: str = "") -> Json:
        return self._send(
            "POST", path, key=key, content=text, headers={"Content-Type": kind}, params=_without_none(query)
        )

    def _send(self, method: str, path: str, *, key: str = "", **more: Json) -> Json:
        if key:
            more["headers"] = {**more.get("headers", {}), "Idempotency-Key": key}
        pauses = [_FIRST_PAUSE_SECONDS * 2**n for n in range(self._retries)] if key or method == "GET" else []
        for pause in pauses:
            try:
                return self._within_limits(method, path, **more)
            except ServerError:
                raise
            except UnreachableError:
                _sleep(pause)
        return self._within_limits(method, path, **more)

    def _within_limits(self, method: str, path: str, **more: Json) -> Json:
        """Send a request, again after each refusal for too many requests. Raises RateLimitError."""
        waited = 0.0
        while True:
            try:
                return self._read(self._ask(method, path, **more))
            except RateLimitError as error:
                pause = 1.0 if error.retry_after is None else error.retry_after
                waited += max(pause, 1.0)
                if waited > self._limit_seconds:
                    raise
                self._on_limit(pause)
                _sleep(pause)

    def _ask(self, method: str, path: str, **more: Json) -> httpx2.Response:
        url = self.server.url
        try:
            return self._http.request(method, path, **more)
        except httpx2.ConnectError as error:
            raise UnreachableError(
                f"Cannot connect to {url}. Is the console running? On its own machine, `python3 manage.py up` "
                "starts it."
            ) from error
        except httpx2.TimeoutException as error:
            raise UnreachableError(f"{url} did not answer in time. Try again.") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise NotConfiguredError(f"Requests to {url} fail: {error}.") from error
        except httpx2.HTTPError as error:
            raise UnreachableError(f"The connection to {url} failed: {error}.") from error

    def _read(self, answer: httpx2.Response) -> Json:
        if answer.status_code == httpx2.codes.NO_CONTENT:
            return None
        document = _json(answer)
        if answer.is_success and document is not None:
            following = answer.links.get("next")
            return document + self._send("GET", following["url"]) if following else document
        if isinstance(document, Mapping) and "detail" in document and not answer.is_server_error:
            raise error_from_response(answer.status_code, document, answer.headers.get("Retry-After", ""))
        if answer.is_server_error:
            kind = UnreachableError if answer.status_code in _PASSING else ServerError
            raise kind(f"The console at {self.server.url} had a fault (status {answer.status_code}).")
        raise NotHeklaError(f"What answers at {self.server.url} is not Hekla (status {answer.status_code}).")


def _certificates(url: str) -> ssl.SSLContext | bool:
    """Those of this machine, if the address needs any: to load them takes longer than most commands."""
    return True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _json(answer: httpx2.Response) -> Json:
    """The JSON document of a response; None if it is not JSON."""
    try:
        return answer.json()
    except ValueError:
        return None


def _without_none(query: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in query.items() if value is not None}
