"""The message from a view to the ASGI server: there is nothing new, so ask again after the next event.

A view that waited itself would occupy a thread and a database connection. Instead it answers at once, and leaves this
message in the scope of the request. The server waits without both, and then repeats the request.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

KEY = "hekla.long_poll"


@dataclass(frozen=True, slots=True)
class LongPoll:
    """Wait for an event of `topic` with a number above `after`, at most `seconds`. `person`: the id of who waits."""

    topic: str
    after: int
    seconds: float
    person: int


def request(scope: MutableMapping[str, Any], poll: LongPoll) -> None:
    """Ask the server to wait. A server that cannot wait sends the answer without events at once."""
    scope[KEY] = poll
