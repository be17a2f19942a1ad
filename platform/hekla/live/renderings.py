"""Renders each subscription once for all its subscribers, a few at a time.

All changes during a rendering lead to one more rendering. A view that takes long is rendered less often and waits in a
queue of its own, so that quick pages need not wait for it.
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
"""After a rendering, the subscription rests this many times as long: it takes a sixth of a core at most."""
_SLOW_SECONDS = 0.1
_COMPRESSION_LEVEL = 4


class Viewer(Protocol):
    """A socket that has subscribed."""

    visitor: Visitor
    standing: RoleSnapshot | None

    def show(self, key: SubscriptionKey, message: bytes) -> None:
        """Send this rendering of a part, or a newer one, as soon as the connection is free."""

    async def reauthorize(self) -> None:
        """Look up what its person may see now."""

    async def end(self) -> None:
        """Close: its person may see nothing any more."""


class RenderQueues:
    """Two queues of renderings, chosen by how long the view took the last time."""

    def __init__(self) -> None:
        self._quick, self._slow = asyncio.Semaphore(2), asyncio.Semaphore(1)
        self._last_seconds: dict[tuple[str, int], float] = {}

    def record(self, key: SubscriptionKey, seconds: float) -> None:
        """Record the CPU time of a rendering."""
        self._last_seconds[key.query.view, key.part] = seconds
        RENDERING_SECONDS.labels(key.query.view).observe(seconds)

    def last_seconds(self, key: SubscriptionKey) -> float:
        """CPU seconds of its last rendering; 0 if there was none."""
        return self._last_seconds.get((key.query.view, key.part), 0.0)

    def queue_for(self, key: SubscriptionKey) -> asyncio.Semaphore:
        """The queue in which it waits."""
        return self._slow if self.last_seconds(key) > _SLOW_SECONDS else self._quick


class Subscription:
    """A key and its subscribers."""

    def __init__(self, key: SubscriptionKey, queues: RenderQueues) -> None:
        self.key, self.topics = key, key.topics
        self._audience_topics = view_of(key).audience_topics
        self.viewers: set[Viewer] = set()
        self._queues = queues
        self._due: set[Viewer] = set()
        self._stale: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None

    def notify(self, topics: Collection[str]) -> None:
        """Something changed: render again for all subscribers."""
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
        """Render with the rights of one subscriber, since all have the same. Returns how many seconds to rest.

        After a failure they stay due: this may have been the last change for a long time.
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
        """End all subscribers with the roles of this one, as the guard knows them now. Returns them."""
        await guard().check()
        alike = {one} | {viewer for viewer in self.viewers if viewer.standing == one.standing}
        await asyncio.gather(*(viewer.end() for viewer in alike), return_exceptions=True)
        return alike


def _message(key: SubscriptionKey, visitor: Visitor) -> tuple[float, bytes]:
    """The CPU seconds that it took, and the message, compressed once for all subscribers."""
    began = time.thread_time()
    number, html = render(key, visitor)
    header: dict[str, Any] = {"type": "aside"}
    if not key.is_side_view:
        header = {"type": "fragments", "part": key.part, "seq": number}
    data = gzip.compress(json.dumps(header | {"html": html}).encode(), _COMPRESSION_LEVEL, mtime=0)
    return time.thread_time() - began, data


class SubscriptionRegistry:
    """All subscriptions of this process."""

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
