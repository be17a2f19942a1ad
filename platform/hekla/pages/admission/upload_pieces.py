"""Splits the body of a long PATCH of an upload into pieces, and sends each to Django as a request of its own.

Django stores a whole body before it calls a view. An upload of many GiB would fill the disk twice, and would lose what
arrived when the network fails. So this application reads the body itself: a waiting upload has no thread and no
connection to the database, memory holds one piece, and every piece is authenticated and authorized. When the network
fails, what has arrived is written.
"""

import asyncio
import re
from typing import Any

from hekla.pages.admission.callers import Scope, headers_of
from hekla.pages.admission.running import Application, Receive, Send

PIECE_BYTES = 1024 * 1024
_LONGEST_SILENCE_SECONDS = 60.0
_UPLOAD = re.compile(r"/api/v1/uploads/[0-9a-f-]{36}")
_OWN = frozenset({b"upload-offset", b"upload-fence", b"content-length", b"transfer-encoding", b"expect"})


class UploadPieces:
    """An ASGI application in front of Django."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, in pieces if it is an upload. The answer to the last piece is the answer to all."""
        if scope["type"] != "http" or scope["method"] != "PATCH" or not _UPLOAD.fullmatch(scope["path"]):
            await self._application(scope, receive, send)
            return
        headers = headers_of(scope)
        body, answer = _Body(receive), _PieceAnswer()
        offset, fence = headers.get("upload-offset", ""), headers.get("upload-fence", "")
        while not body.has_ended or answer.status == 0:
            data = await body.next_piece()
            if not data and answer.status:
                break
            answer = await self._send(scope, data, offset, fence)
            if not answer.is_written:
                break
            offset, fence = answer.header("upload-offset"), answer.header("upload-fence")
        if not body.is_lost:
            await answer.pass_on(send)

    async def _send(self, scope: Scope, data: bytes, offset: str, fence: str) -> "_PieceAnswer":
        answer = _PieceAnswer()
        own = [(b"upload-offset", offset.encode("latin-1")), (b"content-length", str(len(data)).encode())]
        own += [(b"upload-fence", fence.encode("latin-1"))] if fence else []
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _OWN]
        await self._application({**scope, "headers": [*headers, *own]}, _whole(data), answer)
        return answer


class _Body:
    """The body of a request in pieces. `has_ended`: nothing more comes. `is_lost`: the client is gone."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._rest = receive, bytearray()
        self._is_complete = self.is_lost = False

    @property
    def has_ended(self) -> bool:
        return self._is_complete and not self._rest

    async def next_piece(self) -> bytes:
        """The next bytes, at most `PIECE_BYTES`: fewer at the end, and after the client was silent for a minute."""
        while len(self._rest) < PIECE_BYTES and not self._is_complete:
            try:
                message = await asyncio.wait_for(self._receive(), _LONGEST_SILENCE_SECONDS)
            except TimeoutError:
                self._is_complete = True
                break
            self.is_lost = message["type"] == "http.disconnect"
            self._is_complete = self.is_lost or not message.get("more_body", False)
            self._rest += message.get("body", b"")
        piece = bytes(self._rest[:PIECE_BYTES])
        del self._rest[:PIECE_BYTES]
        return piece


class _PieceAnswer:
    """Stores the answer to one piece. `status`: 0 before it begins."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []

    async def __call__(self, message: dict[str, Any]) -> None:
        """Store a message."""
        self._messages.append(message)

    @property
    def status(self) -> int:
        return int(self._messages[0]["status"]) if self._messages else 0

    @property
    def is_written(self) -> bool:
        """Whether the piece is on the disk."""
        return self.status == 204  # noqa: PLR2004

    def header(self, name: str) -> str:
        """The value of this header; empty without it."""
        found = (value for key, value in self._messages[0]["headers"] if key.lower() == name.encode())
        return str(next(found, b"").decode("latin-1"))

    async def pass_on(self, send: Send) -> None:
        """Send the answer."""
        for message in self._messages:
            await send(message)


def _whole(data: bytes) -> Receive:
    """What Django receives: the piece as a whole body, and no disconnect."""
    messages = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()  # Django cancels it after its answer
        return messages.pop()

    return receive
