"""Follows the event log, once for all sockets of this process, and tells those concerned.

The hub reads the log from its own cursor: at a wake-up through Valkey, and each second anyway, so a wake-up that is
lost (or a Valkey that is down) costs a second. Sockets hear only numbers and topics; what they send they read afresh.
"""

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from hekla.apps.outbox import selectors as outbox
from hekla.live.wake import CHANNEL

log = logging.getLogger(__name__)
_LOOK_EVERY_SECONDS = 1.0
_BATCH = 1000


class Subscription:
    """One socket's ear: the newest number that concerns it. Bounded by nature: numbers only grow."""

    def __init__(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self.newest = 0
        self._changed = asyncio.Event()

    def hear(self, number: int) -> None:
        """Something that concerns this socket happened."""
        self.newest = max(self.newest, number)
        self._changed.set()

    async def wait(self) -> int:
        """The newest number, as soon as there is one that was not waited for yet."""
        await self._changed.wait()
        self._changed.clear()
        return self.newest


class Hub:
    """The one follower of this process."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Subscription]] = defaultdict(set)
        self._cursor: int | None = None
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, topics: frozenset[str]) -> Subscription:
        """Hear of these topics from now on; the hub runs as long as somebody listens."""
        subscription = Subscription(topics)
        for topic in topics:
            self._listeners[topic].add(subscription)
        if not self._tasks:
            self._cursor = await database_sync_to_async(outbox.last_number)()
            self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._listen())]
        return subscription

    async def leave(self, subscription: Subscription) -> None:
        """Hear no more."""
        for topic in subscription.topics:
            self._listeners[topic].discard(subscription)
            if not self._listeners[topic]:
                del self._listeners[topic]
        if not self._listeners:
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
                await asyncio.wait_for(self._wake.wait(), _LOOK_EVERY_SECONDS)
            self._wake.clear()

    async def _look(self) -> None:
        while True:
            events = await database_sync_to_async(outbox.after)(self._cursor or 0, limit=_BATCH)
            for event in events:
                for topic in event.topics:
                    for subscription in self._listeners.get(topic, ()):
                        subscription.hear(event.pk)
            if events:
                self._cursor = events[-1].pk
            if len(events) < _BATCH:
                return

    async def _listen(self) -> None:
        """Wake at every word on the channel; come back when Valkey was away."""
        while True:
            try:
                async with Redis.from_url(settings.VALKEY_URL) as valkey, valkey.pubsub() as channel:
                    await channel.subscribe(CHANNEL)
                    async for _message in channel.listen():
                        self._wake.set()
            except (RedisError, OSError) as error:
                log.info("no wake-ups now (%s); looking each second", error)
            await asyncio.sleep(_LOOK_EVERY_SECONDS)


_hubs: dict[int, Hub] = {}


def hub() -> Hub:
    """The hub of the running event loop."""
    return _hubs.setdefault(id(asyncio.get_running_loop()), Hub())
