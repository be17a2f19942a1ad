"""Limits of one answer of an API server: the time for all of it, and its bytes.

The time-out of a socket limits only the pause between two bytes. A server that sends one byte every few seconds would
hold a request for ever, and with it a slot of a worker. So each read waits only for what is left of the whole time.
"""

import io
import socket
import time
import zlib
from functools import lru_cache
from http.client import HTTPResponse
from typing import Any

import urllib3

MAX_ANSWER_BYTES = 128 * 1024 * 1024
"""A page of a thousand pods has some ten million bytes."""
_GZIP = 16 + zlib.MAX_WBITS


class AnswerTooLong(OSError):
    """The server sends more bytes than an answer may have."""


def limit_answers(manager: urllib3.PoolManager) -> None:
    """Apply the read time-out of this manager's requests to the whole answer.

    The answer of a watch has no end: there it applies to each read.
    """
    schemes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _limited(pool) for scheme, pool in schemes.items()}


def unpack(response: urllib3.BaseHTTPResponse) -> bytes:
    """The content of a response that was loaded without decoding it. Raises AnswerTooLong, ValueError."""
    if response.headers.get("Content-Encoding") != "gzip":
        return response.data
    unzip = zlib.decompressobj(_GZIP)
    try:
        found = unzip.decompress(response.data, MAX_ANSWER_BYTES)
    except zlib.error as error:
        raise ValueError(f"The answer is damaged: {error}") from error
    if not unzip.eof:
        raise AnswerTooLong("The answer is incomplete, or too long")
    return found


@lru_cache
def _limited(pool: Any) -> Any:  # noqa: ANN401  (a class of connections that is only known now)
    connection = type("LimitedConnection", (pool.ConnectionCls,), {"response_class": _Answer})
    return type("LimitedPool", (pool,), {"ConnectionCls": connection})


class _Answer(HTTPResponse):
    """An answer whose time begins with its head, or for a watch with each read of what has arrived."""

    def __init__(self, sock: socket.socket, **options: Any) -> None:  # noqa: ANN401
        super().__init__(sock, **options)
        self._stream = _LimitedStream(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._stream)

    def read1(self, n: int = -1) -> bytes:
        """Some bytes, as soon as there are any."""
        self._stream.renew()
        return super().read1(n)


class _LimitedStream(io.RawIOBase):
    """The bytes from a socket, within the socket's time-out in all."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw, self._sock, self._seconds = raw, sock, sock.gettimeout() or float("inf")
        self.renew()

    def renew(self) -> None:
        """Begin the time and the number of bytes again."""
        self._ends_at, self._bytes_left = time.monotonic() + self._seconds, MAX_ANSWER_BYTES

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401  (any buffer)
        """Raises TimeoutError, AnswerTooLong."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError("The answer takes too long")
        self._sock.settimeout(left if left < float("inf") else None)
        size: int | None = self._raw.readinto(buffer)
        self._bytes_left -= size or 0
        if self._bytes_left < 0:
            raise AnswerTooLong("The answer is too long")
        return size

    def close(self) -> None:
        super().close()
        self._raw.close()
