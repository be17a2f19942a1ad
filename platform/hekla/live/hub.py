"""Follows the event log for all sockets of this process, and notifies listeners by topic.

The hub reads the log from its own cursor after each wake-up through Valkey, and every second in any case. A lost
wake-up, or Valkey being down, costs a second. Listeners get no data: they read the present state themselves.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.live.guard import RIGHTS_EVENTS, guard
from hekla.live.threads import in_thread, per_loop
from hekla.live.wake import CHANNEL

log = logging.getLogger(__name__)
_LOOK_EVERY_SECONDS = 1.0
_BATCH = 1000


class Listener(Protocol):
    """Receives notifications about its topics."""

    topics: frozenset[str]

    def notify(self, topics: Collection[str]) -> None:
        """Handle a change in at least one of its topics. `topics` can include others."""


class Hub:
    """The only reader of the event log in this process."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._count = 0
        self._cursor: int | None = None
        self._has_cursor = asyncio.Event()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def join(self, listener: Listener) -> None:
        """Start to notify this listener. The hub runs while there are listeners."""
        self._count += 1
        for topic in listener.topics:
            self._listeners[topic].add(listener)
        if not self._tasks:
            self._cursor, self._has_cursor = None, asyncio.Event()
            self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._listen())]

    async def ready(self) -> None:
        """Wait until the hub has its cursor: listeners then get all later changes."""
        await self._has_cursor.wait()

    def leave(self, listener: Listener) -> None:
        """Stop notifying this listener."""
        self._count -= 1
        for topic in listener.topics:
            self._listeners[topic].discard(listener)
            if not self._listeners[topic]:
                del self._listeners[topic]
        if not self._count:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def _follow(self) -> None:
        while True:
            try:
                await self._look()
            except DatabaseError as error:
                log.warning("cannot read the event log now: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_SECONDS):
                    await self._wake.wait()
            self._wake.clear()

    async def _look(self) -> None:
        if self._cursor is None:
            self._cursor = await in_thread(event_log.last_number)
            self._has_cursor.set()
        while True:
            events = await in_thread(partial(event_log.after, self._cursor, limit=_BATCH))
            self._notify_events(events)
            if events:
                self._cursor = events[-1].pk
            if len(events) < _BATCH:
                return

    def _notify_events(self, events: Sequence[LoggedEvent]) -> None:
        self._notify_topics({topic for event in events for topic in event.topics})
        if any(event.kind in RIGHTS_EVENTS for event in events):
            guard().check_now()

    def _notify_topics(self, topics: set[str]) -> None:
        for listener in {listener for topic in topics for listener in self._listeners.get(topic, ())}:
            listener.notify(topics)

    def _handle_message(self, message: bytes | int) -> None:
        """Notify the topics in the message. An empty or a subscription message makes the hub read the log."""
        if message and isinstance(message, bytes):
            self._notify_topics(set(message.decode().split(" ")))
        else:
            self._wake.set()

    async def _listen(self) -> None:
        """Handle every message of the channel, and reconnect after an error.

        A reconnecting client can swallow a cancellation, so this checks for it between messages too.
        """
        while not _is_cancelled():
            try:
                async with Redis.from_url(settings.VALKEY_URL) as valkey, valkey.pubsub() as channel:
                    await channel.subscribe(CHANNEL)
                    while not _is_cancelled():
                        if message := await channel.get_message(timeout=_LOOK_EVERY_SECONDS):
                            self._handle_message(message["data"])
            except (RedisError, OSError) as error:
                log.info("no wake-ups now (%s); looking each second", error)
            await asyncio.sleep(_LOOK_EVERY_SECONDS)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


hub = per_loop(Hub)
