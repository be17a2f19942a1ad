"""Asks JupyterLab in a pod how many of its kernels are busy. What answers is hostile, so its response is bounded."""

import asyncio
import json
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync

from hekla.backends.base import BackendError, PodKey, PortForwarding

log = logging.getLogger(__name__)
_SECONDS, _AT_ONCE, _MAX_BYTES, _MAX_PIECES = 5.0, 16, 256 * 1024, 256
_TOGETHER_SECONDS = 20.0
"""For all servers. What is not known by then keeps its session. The order is random, so that none is always last."""
_BUSY = frozenset({"busy", "starting", "restarting"})


@dataclass(frozen=True, slots=True)
class KernelServer:
    """JupyterLab at a port of a pod. `base`: the path below which it is; empty: none."""

    ports: PortForwarding
    key: PodKey
    port: int
    token: str
    base: str = ""


def count_busy(servers: Sequence[KernelServer]) -> list[int | None]:
    """The number of busy kernels of each of these servers; None if it is not known."""
    return async_to_sync(_count_all)(servers) if servers else []


async def _count_all(servers: Sequence[KernelServer]) -> list[int | None]:
    places, loop = asyncio.Semaphore(_AT_ONCE), asyncio.get_running_loop()
    deadline = loop.time() + _TOGETHER_SECONDS
    found: list[int | None] = [None] * len(servers)

    async def one(place: int) -> None:
        async with places:
            try:
                async with asyncio.timeout_at(min(loop.time() + _SECONDS, deadline)):
                    found[place] = _busy(await _ask(servers[place]))
            except (BackendError, TimeoutError, OSError) as error:
                log.info("cannot read the kernels of a session: %s", error)
            except Exception:  # one session must not keep all others from being measured
                log.exception("cannot read the kernels of a session")

    order = random.sample(range(len(servers)), len(servers))
    await asyncio.gather(*map(one, order))
    return found


async def _ask(server: KernelServer) -> bytes:
    """The response, up to a limit. HTTP/1.0: it ends with the connection, and is in one piece."""
    request = f"GET {server.base}/api/kernels HTTP/1.0"
    head = (request, f"Host: localhost:{server.port}", f"Authorization: token {server.token}")
    async with server.ports.connect(server.key, server.port) as stream:
        await stream.send("\r\n".join((*head, "", "")).encode())
        found = b""
        for _piece in range(_MAX_PIECES):  # byte by byte, each look for the end would cost more
            data = await stream.receive()
            found += data
            if not data or len(found) > _MAX_BYTES or _is_whole(found):
                break
        return found


def _is_whole(response: bytes) -> bool:
    """Whether the body has the length that the head names: some servers keep the connection open."""
    head, end, body = response.partition(b"\r\n\r\n")
    fields = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    lengths = [value.strip() for name, _colon, value in fields if name == b"content-length"]
    return bool(end and lengths and lengths[0].isdigit() and len(body) >= int(lengths[0][:9]))


def _busy(response: bytes) -> int | None:
    head, _end, body = response.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] + b" ":
        return None
    try:
        kernels = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(kernels, list) or not all(isinstance(one, dict) for one in kernels):
        return None
    states = [one.get("execution_state") for one in kernels]
    return sum(state in _BUSY for state in states) if all(isinstance(state, str) for state in states) else None
