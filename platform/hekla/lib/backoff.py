"""How long to wait before something is tried again: ever longer, up to a bound."""

from datetime import timedelta

_FIRST, _LONGEST = timedelta(seconds=30), timedelta(hours=1)


def backoff_delay(attempts: int) -> timedelta:
    """How long to wait after so many attempts."""
    return min(_FIRST * (1 << min(attempts - 1, 10)), _LONGEST)
