"""Time as a value that is passed in, so that tests and simulations choose it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

Clock = Callable[[], datetime]
_simulated: ContextVar[Clock | None] = ContextVar("simulated_clock", default=None)


def now() -> datetime:
    """The current time, in UTC."""
    clock = _simulated.get()
    return clock() if clock else datetime.now(tz=UTC)


@contextmanager
def simulated(clock: Clock) -> Iterator[None]:
    """Within this block, in this thread only, `now` is the time of this clock."""
    token = _simulated.set(clock)
    try:
        yield
    finally:
        _simulated.reset(token)
