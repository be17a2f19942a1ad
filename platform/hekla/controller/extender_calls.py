"""The calls of a cluster's controller to extenders (`engine.plugins.extender`).

A cycle waits for the answers, so they are bounded: in time each and all together, in bytes, and by a circuit breaker.
An extender that failed several times in a row is not called for a while; then one call tries it again.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from hekla.scheduling.extenders import is_allowed

log = logging.getLogger(__name__)
CYCLE_SECONDS = 2.0
"""For all calls of a cycle together: well within the lifetime of a lease, which no step of a cycle renews."""
MOST_BYTES = 4_000_000
"""Of an answer: a score for each of ten thousand nodes is a tenth of it."""
FAILURES, REST_SECONDS = 3, 30.0
"""After so many failures in a row, an extender is not called for so long."""
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "Hekla"}


class NoAnswer(Exception):
    """The extender was not called, or gave no answer that can be used."""


@dataclass
class _Breaker:
    """What is known about one server."""

    failures: int = 0
    rests_until: float = 0.0


class ExtenderCalls:
    """Calls extenders for one controller.

    A thread of its own runs the requests, so that a call ends on time even if the extender answers byte by byte.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx2.AsyncClient | None = None
        self._breakers: dict[str, _Breaker] = {}
        self._cycle_ends_at = 0.0

    def begin_cycle(self) -> None:
        """The calls from now on belong to one cycle."""
        self._cycle_ends_at = time.monotonic() + CYCLE_SECONDS

    def __call__(self, address: str, document: Mapping[str, Any], timeout: float) -> Any:  # noqa: ANN401
        """Post this document, and return the answer, which was JSON. `timeout` in seconds. Raises NoAnswer."""
        if not is_allowed(address):
            raise NoAnswer(f"HEKLA_EXTENDERS does not allow {address}")
        server = address.split("/")[2]
        breaker, now = self._breakers.setdefault(server, _Breaker()), time.monotonic()
        if now < breaker.rests_until:
            raise NoAnswer(f"{server} is not called before {breaker.rests_until - now:.0f} s")
        seconds = min(timeout, self._cycle_ends_at - now)
        if seconds <= 0:
            raise NoAnswer("the calls of this cycle took too long")
        try:
            answer = self._post(address, document, seconds)
        except (TimeoutError, ValueError, RecursionError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._count_failure(server, breaker, error)
            raise NoAnswer(str(error)) from error
        breaker.failures = 0
        return answer

    def _count_failure(self, server: str, breaker: _Breaker, error: Exception) -> None:
        breaker.failures += 1
        log.warning("the extender %s does not answer: %s: %s", server, type(error).__name__, error)
        if breaker.failures >= FAILURES:
            breaker.rests_until = time.monotonic() + REST_SECONDS

    def _post(self, address: str, document: Mapping[str, Any], seconds: float) -> Any:  # noqa: ANN401
        task = asyncio.run_coroutine_threadsafe(self._send(address, document, seconds), self._running_loop())
        return json.loads(task.result())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=[self._loop], name="extender calls", daemon=True).start()
        return self._loop

    async def _send(self, address: str, document: Mapping[str, Any], seconds: float) -> bytes:
        if self._client is None:
            self._client = httpx2.AsyncClient(headers=_HEADERS, follow_redirects=False, trust_env=False)
        answer = bytearray()
        async with (
            asyncio.timeout(seconds),
            self._client.stream("POST", address, json=document, timeout=seconds) as response,
        ):
            response.raise_for_status()
            async for piece in response.aiter_raw():  # not decompressed: a small answer could become a large one
                answer += piece
                if len(answer) > MOST_BYTES:
                    raise ValueError(f"the answer has more than {MOST_BYTES} bytes")
        return bytes(answer)

    def close(self) -> None:
        """Close the connections, and end the thread. A later call starts another."""
        loop, self._loop = self._loop, None
        client, self._client = self._client, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(_end(client), loop)


async def _end(client: httpx2.AsyncClient | None) -> None:
    if client is not None:
        await client.aclose()
    asyncio.get_running_loop().stop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
