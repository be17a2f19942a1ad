"""Responses in chunks, whose length costs no memory."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from hekla.lib.text import show_bidi_controls


class FileResponse(StreamingHttpResponse):
    """Chunks, none of them empty, as a file that browsers save and never run, whatever its name says.

    Each chunk is read after the one before it is sent: Django reads all chunks of a plain iterator first.
    """

    def __init__(self, chunks: Iterator[bytes], name: str, content_type: str = "application/octet-stream") -> None:
        super().__init__(chunks, content_type=content_type)
        safe_name = "".join(sign if sign.isprintable() else "_" for sign in show_bidi_controls(name))
        self.headers["Content-Disposition"] = content_disposition_header(True, safe_name)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = iter(self)
        while chunk := await sync_to_async(_next)(chunks):
            yield chunk


def _next(chunks: Iterator[bytes]) -> bytes:
    """The next chunk; empty at the end."""
    return next(chunks, b"")
