"""Many small requests, one after another on each of some connections."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hekla.cli.client import Failure


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the program in the pod is reached: what to connect to, and the host and the cookie of a request."""

    host: str
    port: int
    named: str
    cookie: str = ""

    def head(self, method: str, path: str, *fields: str) -> bytes:
        """The head of a request, with all but its length."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.named}", f"Origin: http://{self.named}"]
        lines += [f"Cookie: {self.cookie}"] if self.cookie else []
        return ("\r\n".join([*lines, *fields]) + "\r\n\r\n").encode()


def seconds_of(endpoint: Endpoint, connections: int, count: int) -> list[float]:
    """The seconds of each of `count` requests in all. Raises Failure."""
    return asyncio.run(_all(endpoint, connections, count))


def percentiles(seconds: Sequence[float], *which: int) -> list[float]:
    """Percentiles in milliseconds."""
    return [round(float(value) * 1000, 2) for value in np.percentile(seconds, which)]


async def _all(endpoint: Endpoint, connections: int, count: int) -> list[float]:
    shares = [count // connections + (number < count % connections) for number in range(connections)]
    found = await asyncio.gather(*(_on_one(endpoint, share) for share in shares if share))
    return [one for of_one in found for one in of_one]


async def _on_one(endpoint: Endpoint, count: int) -> list[float]:
    """The seconds of requests on one connection, whose first request does not count."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    request, found = endpoint.head("GET", "/small"), list[float]()
    for _ in range(count + 1):
        began = time.perf_counter()
        writer.write(request)
        await _read(reader)
        found.append(time.perf_counter() - began)
    writer.close()
    return found[1:]


async def _read(reader: asyncio.StreamReader) -> None:
    """Read one answer. Raises Failure if it is none of the program."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200 "):
        raise Failure(f"A request was refused: {head[:60]!r}")
    await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
