"""Who uses which session now, in the cache: each web process knows only the requests and websockets that it serves.

It is no record. Entries expire, and without the cache nobody is shown.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from django.core.cache import cache
from redis.exceptions import RedisError

FORGET_SECONDS = 600
"""After the last request of a person."""
UseTimes = Mapping[tuple[int, int], datetime]
"""When people used sessions last: session and person (primary keys)."""


def note(times: UseTimes) -> None:
    """Store when people used sessions."""
    try:
        cache.set_many({_key(*place): at.timestamp() for place, at in times.items()}, FORGET_SECONDS)
    except RedisError:
        return


def last_used(session: int, people: Collection[int]) -> dict[int, datetime]:
    """When these people used the session last, for those who did within some minutes."""
    keys = {_key(session, person): person for person in people}
    try:
        found = cache.get_many(keys)
    except RedisError:
        return {}
    return {keys[key]: datetime.fromtimestamp(at, tz=UTC) for key, at in found.items() if isinstance(at, float)}


def _key(session: int, person: int) -> str:
    return f"workbench:presence:{session}:{person}"
