"""Messages between the processes of the console (Celery on Valkey): how many wait, since when, and which tasks failed.

Tasks that fail are remembered in Valkey, some at most: they are news for operators, not history.
"""

import json
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from hekla.lib import clock

log = logging.getLogger(__name__)
QUEUES = (settings.CELERY_TASK_DEFAULT_QUEUE, "control")
SENT_AT = "sent_at"
"""The header of a message with the time when it was sent, in seconds since 1970."""
_FAILURES = "hekla:failed-tasks"
_MOST_FAILURES, _LONGEST_ERROR, _LIFETIME_SECONDS = 50, 300, 7 * 86_400


@dataclass(frozen=True, slots=True)
class MessageQueue:
    """A queue of messages that no worker has taken yet. `oldest_seconds`: the age of the next one; None: unknown."""

    name: str
    length: int
    oldest_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task that ended with an error."""

    at: datetime
    task: str
    error: str


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What Valkey says. `problem`: why nothing is known; `unacknowledged`: messages that workers hold."""

    problem: str = ""
    version: str = ""
    memory_bytes: int = 0
    clients: int = 0
    queues: tuple[MessageQueue, ...] = ()
    unacknowledged: int = 0
    failures: tuple[FailedTask, ...] = ()


@cache
def _valkey() -> Redis:
    return Redis.from_url(settings.VALKEY_URL, socket_timeout=1.0, socket_connect_timeout=1.0)


def broker_state() -> BrokerState:
    """The state of the broker now; a problem instead if it does not answer."""
    try:
        with _valkey().pipeline(transaction=False) as commands:
            commands.info()
            for name in QUEUES:
                commands.llen(name)
                commands.lindex(name, -1)
            commands.hlen("unacked")
            commands.lrange(_FAILURES, 0, _MOST_FAILURES - 1)
            info, *found, unacknowledged, failures = commands.execute()
    except (RedisError, OSError) as error:
        return BrokerState(problem=f"{type(error).__name__}: {error}"[:_LONGEST_ERROR])
    queues = (
        MessageQueue(name, int(length), _age(oldest))
        for name, length, oldest in zip(QUEUES, found[::2], found[1::2], strict=True)
    )
    return BrokerState(
        version=str(info.get("valkey_version") or info.get("redis_version", "")),
        memory_bytes=int(info.get("used_memory", 0)),
        clients=int(info.get("connected_clients", 0)),
        queues=tuple(queues),
        unacknowledged=int(unacknowledged),
        failures=tuple(filter(None, map(_failure, failures))),
    )


def _age(message: bytes | None) -> float | None:
    """The age of a message in seconds; None if there is none, or it does not tell."""
    try:
        sent_at = json.loads(message or b"{}").get("headers", {}).get(SENT_AT)
        return max(0.0, time.time() - float(sent_at)) if sent_at is not None else None
    except (ValueError, TypeError, AttributeError):
        return None


def _failure(row: bytes) -> FailedTask | None:
    try:
        found: dict[str, Any] = json.loads(row)
        return FailedTask(datetime.fromtimestamp(found["at"], UTC), str(found["task"]), str(found["error"]))
    except (ValueError, TypeError, KeyError):
        return None


def note_failure(task: str, error: BaseException) -> None:
    """Remember that a task failed. Never fails itself. Only the first line: those of a database below quote rows."""
    line = f"{type(error).__name__}: {error}".partition("\n")[0]
    text = "".join(letter if letter.isprintable() else " " for letter in line)
    row = {"at": clock.now().timestamp(), "task": task[:200], "error": text[:_LONGEST_ERROR]}
    try:
        with _valkey().pipeline(transaction=False) as commands:
            commands.lpush(_FAILURES, json.dumps(row))
            commands.ltrim(_FAILURES, 0, _MOST_FAILURES - 1)
            commands.expire(_FAILURES, _LIFETIME_SECONDS)
            commands.execute()
    except (RedisError, OSError) as problem:
        log.warning("cannot remember the failure of %s: %s", task, problem)
