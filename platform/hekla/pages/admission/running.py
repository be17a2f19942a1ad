"""Bounds how many requests of one person run at once. More of them queue, and beyond that they are refused.

Each running request has a thread and a database connection. One person with many requests would take all of them, and
the other people of the process would get errors. A queued or refused request costs neither.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hekla.pages.admission.callers import Scope, caller_of, learn
from hekla.pages.admission.refusals import refuse

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[..., Awaitable[None]]
MAX_RUNNING = 4
"""A browser sends at most six requests at once."""
MAX_QUEUED = 60


class _Lane:
    """The requests of one caller: those that run, and those in the queue."""

    def __init__(self) -> None:
        self.count = 0
        self.slots = asyncio.Semaphore(MAX_RUNNING)


class RunningRequests:
    """An ASGI application in front of Django."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lanes: dict[str, _Lane] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its caller has a slot, or refuse it with 429."""
        caller = caller_of(scope)
        lane = self._lanes.setdefault(caller, _Lane())
        if lane.count >= MAX_RUNNING + MAX_QUEUED:
            await refuse(scope, send)
            return
        lane.count += 1
        try:
            async with lane.slots:
                await self._application(scope, receive, send)
        finally:
            learn(scope)
            lane.count -= 1
            if not lane.count:
                del self._lanes[caller]
