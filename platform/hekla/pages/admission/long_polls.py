"""Waits for events without a thread and a database connection, then repeats the request of the client.

The view says what to wait for (`lib.long_poll`). The hub of the open pages reads the event log for all who wait. Each
repeated request authenticates again, so a person who loses the permission gets the refusal, not the event.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError

from hekla.apps.event_log import selectors as event_log
from hekla.lib.late_imports import import_in_thread
from hekla.lib.long_poll import KEY, LongPoll
from hekla.live.threads import in_thread
from hekla.pages.admission.callers import Scope
from hekla.pages.admission.refusals import refuse
from hekla.pages.admission.running import Application, Receive, Send

if TYPE_CHECKING:
    from hekla.live.hub import Hub

MAX_WAITS = 50
"""Requests of one person that wait at once in this process. An event repeats all of them: they must fit the queue."""


class _Answer:
    """Sends the messages of the application, unless its view asked to wait: then it stores them."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send, self._messages = scope, send, list[dict[str, Any]]()

    @property
    def poll(self) -> LongPoll | None:
        """What the view waits for; None if its answer is final."""
        return self._scope.get(KEY)

    async def __call__(self, message: dict[str, Any]) -> None:
        """Send or store a message."""
        if self.poll is None:
            await self._send(message)
        else:
            self._messages.append(message)

    async def release(self) -> None:
        """Send the stored messages."""
        for message in self._messages:
            await self._send(message)


class _Change:
    """Listens for the next event of a topic."""

    def __init__(self, topic: str) -> None:
        self.topics, self.happened = frozenset({topic}), asyncio.Event()

    def notify(self, topics: Collection[str]) -> None:  # noqa: ARG002
        """Wake the request."""
        self.happened.set()


class LongPolls:
    """An ASGI application in front of Django."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._waits: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and again after each change, until its answer is final or the time is over."""
        answer = await self._ask(scope, receive, send)
        if (poll := answer.poll) is None:
            return
        if self._waits[poll.person] >= MAX_WAITS:
            await refuse(scope, send)
            return
        self._waits[poll.person] += 1
        try:
            await self._wait(scope, receive, send, answer, poll)
        finally:
            self._waits -= Counter({poll.person: 1})

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> _Answer:
        own = {**scope}
        answer = _Answer(own, send)
        await self._application(own, receive, answer)
        return answer

    async def _wait(self, scope: Scope, receive: Receive, send: Send, answer: _Answer, poll: LongPoll) -> None:
        deadline, change = time.monotonic() + poll.seconds, _Change(poll.topic)
        gone = asyncio.create_task(_disconnected(receive))
        hub: Hub = (await import_in_thread("hekla.live.hub")).hub()
        hub.join(change)
        try:
            await _check_for_earlier(hub, change, poll, deadline)
            while await _is_woken(change, gone, deadline):
                change.happened.clear()
                answer = await self._ask(scope, _without_body(gone), send)
                if answer.poll is None:
                    return
            if not gone.done():
                await answer.release()
        finally:
            hub.leave(change)
            gone.cancel()


async def _check_for_earlier(hub: "Hub", change: _Change, poll: LongPoll, deadline: float) -> None:
    """Look for events between the view's answer and the start of the hub's notifications."""
    with suppress(TimeoutError, DatabaseError):  # the hub logs that the database does not answer
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
            await hub.ready()
            if await in_thread(partial(event_log.count_after, poll.after, [poll.topic], limit=1)):
                change.happened.set()


async def _is_woken(change: _Change, gone: "asyncio.Task[None]", deadline: float) -> bool:
    """Wait for an event. False if the client disconnected or the time is over."""
    event = asyncio.create_task(change.happened.wait())
    rest = max(0.0, deadline - time.monotonic())
    try:
        await asyncio.wait({event, gone}, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
        return event.done() and not gone.done()
    finally:
        event.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without_body(gone: "asyncio.Task[None]") -> Receive:
    """What a repeated request receives: an empty body, then the disconnect of the client."""
    messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.shield(gone)
        return {"type": "http.disconnect"}

    return receive
