"""Renders each sight once for all who see it, a few at a time.

While a rendering is made, whatever happens leads to one more, not to as many as there were changes. What takes long to
render is rendered less often, and stands in a line of its own, so that quick pages need not wait for it.
"""

import asyncio
import gzip
import json
import logging
import time
from collections.abc import Collection
from functools import partial
from typing import Protocol

from django.db import DatabaseError

from hekla.apps.tenancy.selectors import Standing
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
"""So many times as long as a rendering took, nothing of that sight is rendered: it takes a sixth of a core at most."""
_SLOW_SECONDS = 0.1
_COMPRESSION_LEVEL = 4


class Viewer(Protocol):
    """A socket that shows a sight."""

    visitor: Visitor
    standing: Standing | None

    def show(self, sight: SubscriptionKey, message: bytes) -> None:
        """Send this of that part of the page, or something newer, as soon as the line is free."""

    async def look_again(self) -> None:
        """Find out what its person sees now."""

    async def end(self) -> None:
        """There is nothing to be seen any more."""


class RenderQueues:
    """Where renderings wait for their turn: by what those of the same view took the last time."""

    def __init__(self) -> None:
        self._quick, self._slow = asyncio.Semaphore(2), asyncio.Semaphore(1)
        self._took: dict[tuple[str, int], float] = {}

    def note(self, sight: SubscriptionKey, seconds: float) -> None:
        """So much of a processor it took."""
        self._took[sight.asked.view, sight.part] = seconds
        RENDERING_SECONDS.labels(sight.asked.view).observe(seconds)

    def took(self, sight: SubscriptionKey) -> float:
        """How much it takes, as far as anybody knows."""
        return self._took.get((sight.asked.view, sight.part), 0.0)

    def of(self, sight: SubscriptionKey) -> asyncio.Semaphore:
        """The line for it."""
        return self._slow if self.took(sight) > _SLOW_SECONDS else self._quick


class Subscription:
    """A sight, and those who see it."""

    def __init__(self, sight: SubscriptionKey, lines: RenderQueues) -> None:
        self.sight, self.topics = sight, sight.topics
        self._anew = view_of(sight).anew
        self.viewers: set[Viewer] = set()
        self._lines = lines
        self._due: set[Viewer] = set()
        self._unsettled: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None

    def hear(self, topics: Collection[str]) -> None:
        """Something changed: show all of them what it is now."""
        if self._anew.isdisjoint(topics):
            self._due |= self.viewers
        else:
            self._unsettled |= self.viewers
        self._start()

    def want(self, viewer: Viewer) -> None:
        """This one has not seen what it is now."""
        self._due.add(viewer)
        self._start()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_up())

    async def _keep_up(self) -> None:
        while self._due or self._unsettled:
            while self._unsettled:
                await self._unsettled.pop().look_again()
            async with self._lines.of(self.sight):
                due, self._due = self._due & self.viewers, set()
                pause = await self._show(due)
            await asyncio.sleep(pause)

    async def _show(self, due: set[Viewer]) -> float:
        """Rendered by the rights of any of them: they have the same. Returns for how many seconds it rests now.

        Where it cannot be rendered they stay due: this may have been the last change for a long time.
        """
        while due:
            one = next(iter(due))
            try:
                seconds, message = await in_thread(partial(_message, self.sight, one.visitor))
            except ScopeChanged:
                due.discard(one)
                await one.look_again()
            except NotFound:
                due -= await self._ended(one)
            except DatabaseError as error:
                log.warning("cannot render %s now: %s", self.sight.asked.view, error)
                self._due |= due
                return _RETRY_SECONDS
            except Exception:
                log.exception("cannot render %s", self.sight.asked.view)
                self._due |= due
                return _RETRY_AFTER_ERROR_SECONDS
            else:
                self._lines.note(self.sight, seconds)
                for viewer in due & self.viewers:
                    viewer.show(self.sight, message)
                break
        return max(_BATCH_SECONDS, _IDLE_RATIO * self._lines.took(self.sight))

    async def _ended(self, one: Viewer) -> set[Viewer]:
        """Those who see no more what this one does not: all of its standing, as the guard knows it now."""
        await guard().look()
        alike = {one} | {viewer for viewer in self.viewers if viewer.standing == one.standing}
        await asyncio.gather(*(viewer.end() for viewer in alike), return_exceptions=True)
        return alike


def _message(sight: SubscriptionKey, visitor: Visitor) -> tuple[float, bytes]:
    """Compressed once for all who are sent it; and what that took of this thread's processor."""
    began = time.thread_time()
    number, html = render(sight, visitor)
    told = {"type": "aside"} if sight.is_aside else {"type": "fragments", "part": sight.part, "seq": number}
    data = gzip.compress(json.dumps(told | {"html": html}).encode(), _COMPRESSION_LEVEL, mtime=0)
    return time.thread_time() - began, data


class SubscriptionRegistry:
    """All sights that are seen in this process."""

    def __init__(self) -> None:
        self._shown: dict[SubscriptionKey, Subscription] = {}
        self._lines = RenderQueues()

    def join(self, sight: SubscriptionKey, viewer: Viewer) -> Subscription:
        """From now on this viewer is shown what changes."""
        shown = self._shown.get(sight)
        if shown is None:
            shown = self._shown[sight] = Subscription(sight, self._lines)
            hub().join(shown)
        shown.viewers.add(viewer)
        return shown

    def leave(self, shown: Subscription, viewer: Viewer) -> None:
        """It is not shown it any more."""
        shown.viewers.discard(viewer)
        if not shown.viewers and self._shown.get(shown.sight) is shown:
            del self._shown[shown.sight]
            hub().leave(shown)


subscription_registry = per_loop(SubscriptionRegistry)
