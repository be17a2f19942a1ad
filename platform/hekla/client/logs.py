"""Reading the log of a pod in pieces."""

import time
from collections.abc import Iterable, Iterator

from hekla.client.transport import Transport

_PIECE = 1024 * 1024
_LOOK_EVERY_SECONDS = 0.5


def pieces(transport: Transport, path: str, attempt: int, *, follow: bool) -> Iterator[str]:
    """The log from its first byte to its present end; with `follow`, until the log is complete."""
    offset, complete = 0, False
    while not complete:
        piece = transport.get(path, offset=offset, limit=_PIECE, attempt=attempt)
        grew, offset, complete = piece["next_offset"] > offset, piece["next_offset"], piece["complete"]
        if grew:
            yield piece["text"]
        elif not follow:
            return
        elif not complete:
            time.sleep(_LOOK_EVERY_SECONDS)


def lines(texts: Iterable[str]) -> Iterator[str]:
    """The lines of these texts, without line ends. The last line may be incomplete."""
    rest = ""
    for text in texts:
        *whole, rest = (rest + text).split("\n")
        yield from whole
    if rest:
        yield rest
