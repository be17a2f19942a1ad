"""So many tries in so many seconds, counted in the cache: cheap, and exact enough against a loop or a guesser."""

from datetime import timedelta

from django.core.cache import cache
from redis.exceptions import RedisError

from hekla.lib import clock


def allows(key: str, *, most: int, seconds: int) -> bool:
    """Count one try in the present window; False when it is used up."""
    name = f"limit:{key}:{int(clock.now().timestamp()) // seconds}"
    try:
        cache.add(name, 0, timeout=2 * seconds)
        return bool(cache.incr(name) <= most)
    except (RedisError, ValueError):  # the count is lost, or the server that keeps it: nobody is locked out for it
        return True


def until_next(seconds: int) -> timedelta:
    """How long the present window lasts."""
    return timedelta(seconds=seconds - clock.now().timestamp() % seconds)
