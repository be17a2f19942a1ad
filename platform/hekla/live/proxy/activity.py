"""What of the traffic of a session shows that a person uses it.

What a page does by itself does not: see `domain.polling`.
"""

from typing import Any

from hekla.domain.idleness import Signal
from hekla.domain.polling import is_message_of_person, is_request_of_person
from hekla.domain.tools import Tool
from hekla.live.activity import meter
from hekla.live.proxy.exchange import Receive
from hekla.live.proxy.headers import one
from hekla.live.proxy.pages import Send


class SessionTraffic:
    """One request or websocket of a session (primary key), as it passes."""

    def __init__(self, session: int, tool: Tool, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self._session, self._tool = session, tool
        self._receive, self._send = receive, send
        query = scope["query_string"]
        self._target = (scope["raw_path"] + (b"?" + query if query else b"")).decode("latin-1")
        if scope["type"] == "http":
            mode = one(scope["headers"], b"sec-fetch-mode").decode("latin-1")
            if is_request_of_person(tool, scope["method"], self._target, mode):
                meter().of_session(session, Signal.REQUESTS)

    async def receive(self) -> dict[str, Any]:
        """The next message of the browser."""
        message = await self._receive()
        if message["type"] == "websocket.receive":
            text = message.get("text")
            content = text if text is not None else message.get("bytes") or b""
            if is_message_of_person(self._tool, self._target, content):
                meter().of_session(self._session, Signal.INPUT)
        return message

    async def send(self, message: dict[str, Any]) -> None:
        """Send to the browser."""
        body = message.get("body") or message.get("bytes") or message.get("text")
        if body:
            meter().of_session(self._session, Signal.NETWORK, len(body))
        await self._send(message)
