"""Uploads and downloads of many bytes, by plain sockets that block: the client must not be the slowest part."""

import socket
import time
from contextlib import closing

from hekla.bench.proxy.requests import Endpoint
from hekla.cli.client import Failure

_BLOCK_BYTES = 1024 * 1024
_PATIENCE_SECONDS = 60.0


def upload_seconds(endpoint: Endpoint, size: int) -> float:
    """The seconds of one upload of `size` bytes, until its answer. Raises Failure."""
    block = memoryview(bytes(_BLOCK_BYTES))
    with _connected(endpoint) as client:
        began = time.perf_counter()
        client.sendall(endpoint.head("POST", "/upload", f"Content-Length: {size}"))
        for left in range(size, 0, -_BLOCK_BYTES):
            client.sendall(block[: min(left, _BLOCK_BYTES)])
        head, body = _head(client)
        while len(body) < len(str(size)):
            body += _received(client)
        if body != str(size).encode():
            raise Failure(f"An upload arrived in part: {head[:60]!r} {body[:60]!r}")
        return time.perf_counter() - began


def download_seconds(endpoint: Endpoint, size: int) -> float:
    """The seconds of one download of `size` bytes. Raises Failure."""
    buffer = bytearray(_BLOCK_BYTES)
    with _connected(endpoint) as client:
        began = time.perf_counter()
        client.sendall(endpoint.head("GET", f"/bytes/{size}"))
        _head_of_it, body = _head(client)
        left = size - len(body)
        while left:
            count = client.recv_into(buffer)
            if not count:
                raise Failure(f"A download ended {left} bytes early.")
            left -= count
        return time.perf_counter() - began


def _connected(endpoint: Endpoint) -> "closing[socket.socket]":
    return closing(socket.create_connection((endpoint.host, endpoint.port), timeout=_PATIENCE_SECONDS))


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of an answer, and what came with it. Raises Failure."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += _received(client)
    head, _end, body = found.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise Failure(f"A transfer was refused: {head[:60]!r}")
    return head, body


def _received(client: socket.socket) -> bytes:
    data = client.recv(_BLOCK_BYTES)
    if not data:
        raise Failure("A transfer was cut off.")
    return data
