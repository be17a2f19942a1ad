"""Renders each subscription once for all its subscribers, a few subscriptions at a time.

All changes during a rendering lead to one more rendering. Slow views are rendered less often and have a separate
queue, so that quick views do not wait for them.
"""

import asyncio
import gzip
import json
import logging
import time
from collections.abc import Collection
from functools import partial
from typing import Any, Protocol

from django.db import DatabaseError

from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.domain.errors import NotFound
from hekla.live.guard import Visitor, guard
from hekla.live.hub import hub
from hekla.live.instruments import RENDERING_SECONDS
from hekla.live.subscriptions import ScopeChanged, SubscriptionKey, render, view_of
from hekla.live.threads import in_thread, per_loop

log = logging.getLogger(__name__)
_BATCH_SECONDS = 0.05
_RETRY_SECONDS, _RETRY_AFTER_ERROR_SECONDS = 1.0, 10.0
_IDLE_RATIO = 5
"""A subscription pauses this many times as long as its rendering took, so it uses at most 1/6 of a core."""
_SLOW_SECONDS = 0.1
_COMPRESSION_LEVEL = 4


class Viewer(Protocol):
    """A subscribed socket."""

    visitor: Visitor
    roles: RoleSnapshot | None

    def show(self, key: SubscriptionKey, message: bytes) -> None:
        """Send this or a newer rendering of the part when the connection is free."""

    async def reauthorize(self) -> None:
        """Look up the permissions of its person again."""

    async def end(self) -> None:
        """Close the socket: its person has lost the permission."""


class RenderQueues:
    """Two queues of renderings, for quick and for slow views, by the time of the last rendering."""

    def __init__(self) -> None:
        self._quick, self._slow = asyncio.Semaphore(2), asyncio.Semaphore(1)
        self._last_seconds: dict[tuple[str, int], float] = {}

    def record(self, key: SubscriptionKey, seconds: float) -> None:
        """Record the CPU time of a rendering."""
        self._last_seconds[key.query.view, key.part] = seconds
        RENDERING_SECONDS.labels(key.query.view).observe(seconds)

    def last_seconds(self, key: SubscriptionKey) -> float:
        """CPU seconds of the last rendering of this view; 0 before the first."""
        return self._last_seconds.get((key.query.view, key.part), 0.0)

    def queue_for(self, key: SubscriptionKey) -> asyncio.Semaphore:
        """The queue for a rendering of this key."""
        return self._slow if self.last_seconds(key) > _SLOW_SECONDS else self._quick


class Subscription:
    """The subscribers of one key, and the state of its renderings."""

    def __init__(self, key: SubscriptionKey, queues: RenderQueues) -> None:
        self.key, self.topics = key, key.topics
        self._audience_topics = view_of(key).audience_topics
        self.viewers: set[Viewer] = set()
        self._queues = queues
        self._due: set[Viewer] = set()
        self._stale: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None

    def notify(self, topics: Collection[str]) -> None:
        """Render again for all subscribers. If the audience can have changed, reauthorize them first."""
        if self._audience_topics.isdisjoint(topics):
            self._due |= self.viewers
        else:
            self._stale |= self.viewers
        self._start()

    def request(self, viewer: Viewer) -> None:
        """Render again for this subscriber."""
        self._due.add(viewer)
        self._start()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._due or self._stale:
            while self._stale:
                await self._stale.pop().reauthorize()
            async with self._queues.queue_for(self.key):
                due, self._due = self._due & self.viewers, set()
                pause = await self._show(due)
            await asyncio.sleep(pause)

    async def _show(self, due: set[Viewer]) -> float:
        """Render with the permissions of one subscriber, as all have the same. Returns the seconds to pause.

        After a failure the subscribers stay due, because the next change can be far away.
        """
        while due:
            one = next(iter(due))
            try:
                seconds, message = await in_thread(partial(_message, self.key, one.visitor))
            except ScopeChanged:
                due.discard(one)
                await one.reauthorize()
            except NotFound:
                due -= await self._ended(one)
            except DatabaseError as error:
                log.warning("cannot render %s now: %s", self.key.query.view, error)
                self._due |= due
                return _RETRY_SECONDS
            except Exception:
                log.exception("cannot render %s", self.key.query.view)
                self._due |= due
                return _RETRY_AFTER_ERROR_SECONDS
            else:
                self._queues.record(self.key, seconds)
                for viewer in due & self.viewers:
                    viewer.show(self.key, message)
                break
        return max(_BATCH_SECONDS, _IDLE_RATIO * self._queues.last_seconds(self.key))

    async def _ended(self, one: Viewer) -> set[Viewer]:
        """End this subscriber and all with the same roles, after a check by the guard. Returns them."""
        await guard().check()
        alike = {one} | {viewer for viewer in self.viewers if viewer.roles == one.roles}
        await asyncio.gather(*(viewer.end() for viewer in alike), return_exceptions=True)
        return alike


def _message(key: SubscriptionKey, visitor: Visitor) -> tuple[float, bytes]:
    """The CPU seconds of the rendering, and the message, compressed once for all subscribers."""
    began = time.thread_time()
    number, html = render(key, visitor)
    header: dict[str, Any] = {"type": "aside"}
    if not key.is_side_view:
        header = {"type": "fragments", "part": key.part, "seq": number}
    data = gzip.compress(json.dumps(header | {"html": html}).encode(), _COMPRESSION_LEVEL, mtime=0)
    return time.thread_time() - began, data


class SubscriptionRegistry:
    """All subscriptions of one event loop."""

    def __init__(self) -> None:
        self._subscriptions: dict[SubscriptionKey, Subscription] = {}
        self._queues = RenderQueues()

    def join(self, key: SubscriptionKey, viewer: Viewer) -> Subscription:
        """Subscribe this viewer."""
        subscription = self._subscriptions.get(key)
        if subscription is None:
            subscription = self._subscriptions[key] = Subscription(key, self._queues)
            hub().join(subscription)
        subscription.viewers.add(viewer)
        return subscription

    def leave(self, subscription: Subscription, viewer: Viewer) -> None:
        """Unsubscribe this viewer."""
        subscription.viewers.discard(viewer)
        if not subscription.viewers and self._subscriptions.get(subscription.key) is subscription:
            del self._subscriptions[subscription.key]
            hub().leave(subscription)


subscription_registry = per_loop(SubscriptionRegistry)
