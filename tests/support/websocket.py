"""A websocket to a consumer without a server. (Channels' own needs Daphne, which nothing else here needs.)"""

import asyncio
import gzip
import json
import threading
from typing import Any

from asgiref.testing import ApplicationCommunicator

from hekla.live import threads


class Socket(ApplicationCommunicator):
    """Connects to one ASGI websocket application like a browser."""

    def __init__(self, application: Any, path: str, user: Any, **scope: Any) -> None:
        path, _, query = path.partition("?")
        super().__init__(
            application,
            {
                "type": "websocket",
                "path": path,
                "query_string": query.encode(),
                "headers": [],
                "subprotocols": [],
                "user": user,
                **scope,
            },
        )

    async def open(self) -> None:
        """Connects; the application must accept."""
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(5))["type"] == "websocket.accept"

    async def message(self, timeout: float = 3) -> dict[str, Any]:
        """The next message."""
        output = await self.receive_output(timeout)
        assert output["type"] == "websocket.send", output
        return json.loads(gzip.decompress(output["bytes"]) if output.get("bytes") else output["text"])

    async def close_code(self) -> int:
        """The code with which the application closes, now."""
        output = await self.receive_output(3)
        assert output["type"] == "websocket.close", output
        return output["code"]

    async def leave(self) -> None:
        """Closes like a browser."""
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(3)
        if not threads._threads:
            await asyncio.to_thread(_wait_for_renderings)


def _wait_for_renderings() -> None:
    """Waits for running renderings of earlier pages: they read tables that the next test empties."""
    for thread in threading.enumerate():
        if thread.name.startswith("live"):
            thread.join(10)
