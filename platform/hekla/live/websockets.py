"""Websockets, and the end of the process. Their code is imported for the first socket, so that pages answer before."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hekla.lib.late_imports import import_in_thread

Asgi = Callable[..., Awaitable[None]]


async def application(scope: Any, *messages: Any) -> None:  # noqa: ANN401  (receive, send)
    """All websockets."""
    routing = await import_in_thread("hekla.live.routing")
    await routing.application(scope, *messages)


async def lifespan(_scope: Any, receive: Callable[[], Awaitable[Any]], send: Asgi) -> None:  # noqa: ANN401
    """At the end of the process its terminals end, and that is recorded."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    from hekla.live.ssh.connections import connections  # noqa: PLC0415
    from hekla.live.terminals.registry import terminals  # noqa: PLC0415

    await asyncio.gather(terminals().stop_all(), connections().stop_all())
    await send({"type": "lifespan.shutdown.complete"})
