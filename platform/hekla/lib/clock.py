"""Time as a value that is passed in, so that tests and simulations choose it."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(tz=UTC)
