"""Rate limits per time window, counted in the cache: cheap, and exact enough against loops and guessing."""

from datetime import timedelta

from django.core.cache import cache
from redis.exceptions import RedisError

from hekla.lib import clock


def allows(key: str, *, most: int, seconds: int) -> bool:
    """Count one attempt in the current window. Returns False if there were more than `most`."""
    name = f"limit:{key}:{int(clock.now().timestamp()) // seconds}"
    try:
        return bool(cache.count(name, 2 * seconds) <= most)  # type: ignore[attr-defined]
    except RedisError:  # the cache is lost: lock nobody out
        return True


def until_next(seconds: int) -> timedelta:
    """The time until the next window starts."""
    return timedelta(seconds=seconds - clock.now().timestamp() % seconds)
