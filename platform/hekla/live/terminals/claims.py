"""Which process of the console runs a terminal, in Valkey: a person has one terminal in a pod.

A page that reaches another process is asked to connect again until it reaches the right one. A claim ends with its
process after a while. Without Valkey each process decides by itself.
"""

import logging
from functools import partial
from uuid import UUID

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from hekla.live.threads import per_loop

log = logging.getLogger(__name__)
CLAIM_SECONDS = 30
_valkey = per_loop(partial(Redis.from_url, settings.VALKEY_URL, socket_timeout=1.0, socket_connect_timeout=1.0))


async def take(pod_id: int, person: int, terminal: UUID) -> bool:
    """Claim the terminal of a person in a pod. False if another process runs it."""
    try:
        is_ours = await _valkey().set(_of_person(pod_id, person), terminal.hex, nx=True, ex=CLAIM_SECONDS)
        if is_ours:
            await _valkey().set(_of_terminal(terminal.hex), pod_id, ex=CLAIM_SECONDS)
    except (RedisError, OSError) as error:
        log.info("terminals are not claimed now: %s", error)
        return True
    return bool(is_ours)


async def renew(pod_id: int, person: int, terminal: UUID) -> None:
    """Keep the claim for a while more."""
    try:
        await _valkey().set(_of_person(pod_id, person), terminal.hex, ex=CLAIM_SECONDS)
        await _valkey().set(_of_terminal(terminal.hex), pod_id, ex=CLAIM_SECONDS)
    except (RedisError, OSError) as error:
        log.info("a terminal is not claimed now: %s", error)


async def release(pod_id: int, person: int, terminal: UUID) -> None:
    """End the claim."""
    try:
        await _valkey().delete(_of_person(pod_id, person), _of_terminal(terminal.hex))
    except (RedisError, OSError) as error:
        log.info("the claim of a terminal ends later: %s", error)


async def is_elsewhere(terminal: str) -> bool:
    """Whether another process runs the terminal with this id."""
    try:
        return bool(await _valkey().exists(_of_terminal(terminal)))
    except (RedisError, OSError):
        return False


def _of_person(pod_id: int, person: int) -> str:
    return f"hekla:terminal:{pod_id}:{person}"


def _of_terminal(terminal: str) -> str:
    return f"hekla:terminal:{terminal}"
