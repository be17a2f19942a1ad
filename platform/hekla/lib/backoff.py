"""Exponential back-off between retries."""

from datetime import timedelta

_FIRST, _LONGEST = timedelta(seconds=30), timedelta(hours=1)


def backoff_delay(attempts: int) -> timedelta:
    """The delay after that many attempts: 30 s, doubling, at most 1 h."""
    return min(_FIRST * (1 << min(attempts - 1, 10)), _LONGEST)
