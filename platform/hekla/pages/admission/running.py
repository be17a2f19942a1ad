"""Bounds how many requests of one person run at once. More of them queue, and beyond that they are refused.

Each running request has a thread and a database connection. One person with many requests would take all of them, and
the other people of the process would get errors. A queued or refused request costs neither.

The threads of a process take turns. So of a long queue one request runs at a time, two thirds of the time none, and
none begins while a request of somebody else runs: the pages of others do not wait for the threads of one program
between their own turns.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from hekla.pages.admission.callers import Scope, caller_of, learn
from hekla.pages.admission.refusals import refuse

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[..., Awaitable[None]]
MAX_RUNNING = 4
"""A browser sends at most six requests at once."""
MAX_QUEUED = 60
MAX_BURST = 6
"""Queued requests beyond which they run one at a time, with pauses: a browser with a few tabs has fewer."""
MAX_PAUSE_SECONDS = 1.0
"""Before the next of a long queue, at most; else twice the time of the last one."""
MAX_YIELD_SECONDS = 1.0
"""How long the next of a long queue waits for requests of others, at most: it runs even if they never stop."""
_LOOK_SECONDS = 0.02  # between two looks at the requests of others


class _Lane:
    """The requests of one caller: those that run, and those in the queue.

    `others_run`: whether requests whose turn comes first run now. `emptied`: called when the last request has left.
    """

    def __init__(self, others_run: Callable[[], bool], emptied: Callable[[], object]) -> None:
        self._running = 0
        self._began = 0.0  # the newest one, by the loop's clock
        self._queue: deque[asyncio.Future[None]] = deque()
        self._others_run, self._emptied = others_run, emptied

    @property
    def count(self) -> int:
        """Running and queued ones."""
        return self._running + len(self._queue)

    @property
    def comes_first(self) -> bool:
        """Whether long queues wait for this caller: few requests, of which one began just now."""
        age = asyncio.get_running_loop().time() - self._began
        return self._running > 0 and not self._is_long and age < MAX_YIELD_SECONDS

    async def run(self, request: Callable[[], Awaitable[None]]) -> None:
        """Wait for a slot, and run the request."""
        await self._turn()
        loop = asyncio.get_running_loop()
        began = self._began = loop.time()
        try:
            await request()
        finally:
            if self._is_long:
                pause = min(2 * (loop.time() - began), MAX_PAUSE_SECONDS)
                loop.call_later(pause, self._leave_after_others, loop.time() + pause + MAX_YIELD_SECONDS)
            else:
                self._leave()

    async def _turn(self) -> None:
        if self._has_slot:
            self._running += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it has the slot already
                self._leave()
            elif turn in self._queue:
                self._queue.remove(turn)
            raise

    @property
    def _is_long(self) -> bool:
        return len(self._queue) > MAX_BURST

    @property
    def _has_slot(self) -> bool:
        return self._running < (1 if self._is_long else MAX_RUNNING)

    def _leave_after_others(self, latest: float) -> None:
        """Leave when no request of others runs, or at this time of the loop's clock."""
        loop = asyncio.get_running_loop()
        if self._is_long and self._others_run() and loop.time() < latest:
            loop.call_later(_LOOK_SECONDS, self._leave_after_others, latest)
        else:
            self._leave()

    def _leave(self) -> None:
        self._running -= 1
        while self._queue and self._has_slot:
            turn = self._queue.popleft()
            if not turn.done():  # a cancelled one has not left the queue yet
                turn.set_result(None)
                self._running += 1
        if not self.count:
            self._emptied()


class RunningRequests:
    """An ASGI application in front of Django."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lanes: dict[str, _Lane] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its caller has a slot, or refuse it with 429."""
        lane = self._lane(caller_of(scope))
        if lane.count >= MAX_RUNNING + MAX_QUEUED:
            await refuse(scope, send)
            return
        try:
            await lane.run(partial(self._application, scope, receive, send))
        finally:
            learn(scope)

    def _lane(self, caller: str) -> _Lane:
        if caller not in self._lanes:
            self._lanes[caller] = _Lane(self._short_lane_runs, partial(self._lanes.pop, caller))
        return self._lanes[caller]

    def _short_lane_runs(self) -> bool:
        return any(lane.comes_first for lane in self._lanes.values())
