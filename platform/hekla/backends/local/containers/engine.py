"""The API of a container engine (Podman or Docker) at its socket. Standard library only."""

import contextlib
import http.client
import json
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

VERSION = "/v1.41"
NOT_FOUND, CONFLICT = 404, 409
_SECONDS = 60.0
"""The time for an answer. Waiting for the end of a container has no limit."""


class EngineError(Exception):
    """The engine refuses a request. `status`: of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Engine:
    """One engine. Each call opens a connection of its own, and raises OSError if the engine does not answer."""

    def __init__(self, path: str) -> None:
        self._path = path

    def request(self, method: str, path: str, body: object = None, *, seconds: float | None = _SECONDS) -> Any:  # noqa: ANN401
        """The document of the response; None without one. Raises EngineError."""
        text = None if body is None else json.dumps(body).encode()
        with _connected(self._path, seconds) as connection:
            response = _sent(connection, method, path, text, {"Content-Type": "application/json"} if text else {})
            data = response.read()
            return json.loads(data) if response.getheader("Content-Type", "").startswith("application/json") else None

    def lines(self, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Iterator[dict[str, Any]]:
        """POST; the documents of the response, one a line, as they arrive. Raises EngineError."""
        with _connected(self._path, None) as connection:
            for line in _sent(connection, "POST", path, body, headers):
                if line.strip():
                    yield json.loads(line)

    def attach(self, container: str) -> socket.socket:
        """The output of a container from now on: frames with a header of 8 bytes. Raises EngineError."""
        path = f"/containers/{quote(container)}/attach?stream=1&stdout=1&stderr=1"
        with _connected(self._path, None) as connection:
            _sent(connection, "POST", path, None, {"Connection": "Upgrade", "Upgrade": "tcp"})
            return connection.sock.dup()


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, seconds: float | None) -> None:
        super().__init__("engine", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@contextlib.contextmanager
def _connected(path: str, seconds: float | None) -> Iterator[_Connection]:
    """A connection. What is no valid response counts as none."""
    connection = _Connection(path, seconds)
    try:
        yield connection
    except (http.client.HTTPException, ValueError) as error:
        raise ConnectionError(f"its response is not valid: {error}") from error
    finally:
        connection.close()


def _sent(
    connection: _Connection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    """The response, its content unread. Unbuffered before an upgrade, because the stream follows on the socket."""
    connection.request(method, VERSION + path, body=body, headers=dict(headers))
    if "Upgrade" in headers:
        connection.response_class = _Unbuffered
    response = connection.getresponse()
    if response.status >= 400:  # noqa: PLR2004  (of HTTP)
        raise EngineError(response.status, _message(response.read()))
    return response


class _Unbuffered(http.client.HTTPResponse):
    """A response whose headers are read byte by byte, so that nothing of the following stream is lost."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self.fp = os.fdopen(os.dup(sock.fileno()), "rb", buffering=0)  # type: ignore[assignment]


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return data.decode(errors="replace")[:500]
