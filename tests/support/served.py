"""ASGI applications behind real servers, for tests of the proxy of sessions."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from hekla.live import threads
from hekla.live.proxy import admissions


@contextmanager
def served(*applications: Any, last_port: int = 0) -> Iterator[list[int]]:
    """Serves them by real servers in one thread. Yields their ports: free ones, except `last_port` if given."""
    options = {"host": "127.0.0.1", "log_level": "critical", "ws": "websockets-sansio", "timeout_graceful_shutdown": 1}
    ports = [*[0] * (len(applications) - 1), last_port]
    configs = [uvicorn.Config(one, port=port, **options) for one, port in zip(applications, ports, strict=True)]
    servers = [uvicorn.Server(config) for config in configs]

    async def serve() -> None:
        await asyncio.gather(*(server.serve() for server in servers))
        for one in [*admissions.admissions()._admissions.values()]:
            await one.end()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not all(server.started for server in servers):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield [server.servers[0].sockets[0].getsockname()[1] for server in servers]
    finally:
        for server in servers:
            server.should_exit = True
        thread.join(30)
        threads.release_threads()
        for one in threading.enumerate():
            if one.name.startswith("live"):
                one.join(10)
