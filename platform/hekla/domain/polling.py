"""Which requests of a tool's page come from a person. Pages that are merely open ask their tools again and again."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hekla.domain import editor_messages
from hekla.domain.tools import Tool

_READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class _Polling:
    """Of one tool. `reads`: paths that its page reads by itself. `sockets`: paths of websockets that never count.

    `smallest`: shorter messages on websockets only keep them open. `only_pages`: of reads, only whole pages count.
    `is_of_person`: looks into messages.
    """

    reads: re.Pattern[str]
    sockets: re.Pattern[str]
    smallest: int = 0
    only_pages: bool = False
    is_of_person: Callable[[bytes], bool] | None = None


_NOTHING = re.compile(r"(?!)")
_POLLING = {
    Tool.JUPYTERLAB: _Polling(
        # Lists of kernels, sessions, terminals, kernel types and folders, the state of the server, its use, news.
        reads=re.compile(
            r"/api/(kernels|sessions|terminals|kernelspecs|status|me|metrics)\b.*|/api/metrics/.*|/metrics"
            r"|/api/contents(/[^?]*)?(\?(?!.*\btype=(notebook|file)\b).*)?|/lab/api/(news|update).*|/api/collaboration/.*"
        ),
        sockets=re.compile(r"/api/(collaboration|events|yjs)\b.*"),  # who else is here, and events of the server
    ),
    Tool.CODE_SERVER: _Polling(
        reads=_NOTHING, sockets=_NOTHING, only_pages=True, is_of_person=editor_messages.is_of_person
    ),
    Tool.TENSORBOARD: _Polling(reads=re.compile(r"/data/.*"), sockets=_NOTHING),
    # Of unknown programs. A heartbeat, an acknowledgement or an empty message has a few bytes.
    Tool.PORT: _Polling(reads=_NOTHING, sockets=_NOTHING, smallest=33, only_pages=True),
}


def is_request_of_person(tool: Tool, method: str, target: str, mode: str) -> bool:
    """Whether a request shows that a person uses the tool.

    `target`: the path with its query. `mode`: `Sec-Fetch-Mode` of the browser; empty from other programs.
    """
    known = _POLLING[tool]
    if method not in _READS:
        return True
    if known.only_pages and mode not in ("navigate", ""):
        return False
    return known.reads.fullmatch(target) is None


def is_message_of_person(tool: Tool, target: str, message: bytes | str) -> bool:
    """Whether a message that the browser sends on a websocket shows the same."""
    known = _POLLING[tool]
    if known.is_of_person is not None and isinstance(message, bytes):
        return known.is_of_person(message)
    return len(message) >= known.smallest and known.sockets.fullmatch(target) is None
