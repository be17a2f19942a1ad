"""The web server: uvicorn, which wakes up once a second instead of ten times while nobody calls.

uvicorn looks ten times a second whether a signal has requested its end. Here the signal itself ends the wait.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from hekla.launcher.gc_tuning import settle_with_pages

_TICK_SECONDS = 1.0
"""How old the `Date` of responses may be."""
_PATIENCE, _LAZY_PATIENCE = 1, 20
"""A lazy server ends because another one takes over, so nobody waits for its end."""


class WebServer(uvicorn.Server):
    """Serves until a signal arrives."""

    _ended: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop
    ready_file: Path | None = None
    is_lazy = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and record that in the file, by the pid. A lazy server then loads the page after the sign-in."""
        await super().startup(sockets)
        if self.is_lazy:
            from hekla.pages import registry  # noqa: PLC0415  (needs the models)

            Thread(target=registry.load_start_page, name="start page", daemon=True).start()
        if self.ready_file is not None:
            self.ready_file.write_text(str(os.getpid()), encoding="ascii")

    async def main_loop(self) -> None:
        """Update the date of responses each second, until the end is requested."""
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._ended.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Request the end. Runs as a signal handler."""
        super().handle_exit(sig, frame)
        if self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)


def configuration(host: str, port: int, *, patience: int = _PATIENCE) -> uvicorn.Config:
    """The settings of the server on this address. `patience`: seconds that requests have to end before it ends."""
    return uvicorn.Config(
        "hekla.project.asgi:application",
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        # uvicorn itself would believe the headers of every local program. The console reads those of named proxies.
        proxy_headers=False,
        timeout_graceful_shutdown=patience,
        # Longer than the idle time of common proxies (at most 120 s). Else a request can meet a connection that closes.
        timeout_keep_alive=125,
        ws="websockets-sansio",
        # Renderings are compressed already. A compressor per socket would need more memory than the rest of a socket.
        ws_per_message_deflate=False,
    )


def main(arguments: Sequence[str]) -> int:
    """Serve the console until a signal arrives. Returns the exit status."""
    parser = argparse.ArgumentParser("python -m hekla.launcher.web_server", description="Serve the console.")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    parser.add_argument("--listener", type=int, metavar="FD", help="a listening socket, instead of an address")
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="gets the pid once the server listens")
    parser.add_argument("--lazy", action="store_true", help="load each page when it is first opened")
    options = parser.parse_args(arguments)
    settings = configuration(options.host, options.port, patience=_LAZY_PATIENCE if options.lazy else _PATIENCE)
    settings.load_app()  # outside of the event loop
    if not options.lazy:
        settle_with_pages()
    server = WebServer(settings)
    server.ready_file, server.is_lazy = options.ready_file, options.lazy
    with suppress(KeyboardInterrupt):
        server.run(sockets=None if options.listener is None else [socket.socket(fileno=options.listener)])
    return 0 if server.started else STARTUP_FAILURE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
