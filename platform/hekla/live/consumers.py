"""The sockets of pages: one that sends renderings, one that follows a pod's log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.db import DatabaseError

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.impersonation import selectors as acting
from hekla.apps.tenancy.selectors import Standing
from hekla.domain.errors import NotFound
from hekla.live import logs, subscriptions
from hekla.live.guard import Visitor, guard
from hekla.live.hub import hub
from hekla.live.instruments import OPEN_SOCKETS
from hekla.live.renderings import Subscription, subscription_registry
from hekla.live.subscriptions import LiveQuery, SubscriptionKey
from hekla.live.threads import in_thread, per_loop

log = logging.getLogger(__name__)
UNKNOWN, NOT_SIGNED_IN, TRY_AGAIN = 4404, 4401, 1013
_lookup_slots = per_loop(partial(asyncio.Semaphore, 2))
"""However many come at once, so many of them are looked up; those who are inside go on being shown what changes."""


class GuardedConsumer(AsyncJsonWebsocketConsumer):
    """A socket that is told to go as soon as its person may not look on any more."""

    visitor: Visitor
    standing: Standing | None = None
    is_over = False

    async def __call__(self, *asgi: Any) -> None:  # noqa: ANN401  (scope, receive, send)
        """Serve it from beginning to end, and count it for as long."""
        with OPEN_SOCKETS.track_inprogress():
            await super().__call__(*asgi)

    async def connect(self) -> None:
        """Check the person, then let the socket do what it is for."""
        self.params = dict(parse_qsl(self.scope["query_string"].decode(errors="replace")))
        await self.accept()
        visitor = await _visitor_of(self.scope)
        if visitor is None:
            await self._close(NOT_SIGNED_IN)
            return
        self.visitor = visitor
        guard().watch(self)
        if not await self._is_let(self.begin):
            await self._close(UNKNOWN)

    async def begin(self) -> None:
        """Whoever came is signed in. Raises NotFound where there is nothing for them."""
        raise NotImplementedError

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Stop following."""
        self._over()

    async def receive_json(self, content: Any, **_kwargs: Any) -> None:  # noqa: ANN401
        """Pages only listen."""

    async def end(self) -> None:
        """Its person may not look on any more, or there is nothing to be seen."""
        await self._close(UNKNOWN)

    async def look_again(self) -> None:
        """Its person's rights follow from something else now."""
        if not await self._is_let(self.refresh):
            await self.end()

    async def refresh(self) -> None:
        """Go on as what its person is now. Raises NotFound where there is nothing for them any more."""
        raise NotImplementedError

    async def _is_let(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do it, and say whether there was anything for its person.

        Where the database cannot say it now, nothing is shown: the socket is closed, and the browser comes again.
        """
        try:
            await work()
        except NotFound:
            return False
        except DatabaseError as error:
            log.warning("cannot ask what a page may show now: %s", error)
            await self._close(TRY_AGAIN)
        return True

    async def _close(self, code: int) -> None:
        if not self.is_over:
            self._over()
            with suppress(OSError):  # the browser left meanwhile
                await self.close(code)

    def _over(self) -> None:
        self.is_over = True
        if hasattr(self, "visitor"):
            guard().leave(self)


class PageConsumer(GuardedConsumer):
    """Sends a page's live parts whenever something that concerns it happened.

    The page says the number it was rendered at (`since`). What happened in between is sent at once: a rendering is the
    present state, so however much was missed one message makes the page right. Each carries a number at or below
    which nothing is missing from it.
    """

    shown: Sequence[Subscription] = ()
    _sender: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Check the view, then follow it."""
        self._newest: dict[SubscriptionKey, bytes] = {}
        self.asked = LiveQuery.by(self.params, self.scope.get("cookies", {}).get("django_language", "en"))
        shown = await self._join(await self._seen())
        since = _parse_number(self.params.get("since", ""))
        own = [one for one in shown if not one.sight.is_aside]
        topics = frozenset[str]().union(*(one.topics for one in own))
        async with _lookup_slots():
            missed = await in_thread(partial(event_log.count_after, since, topics))
        if missed:
            await self.send_json({"type": "behind", "events": missed, "parts": len(own)})
            self._want_all()
        else:
            await self.send_json({"type": "hello", "seq": since, "parts": len(own)})

    async def disconnect(self, code: int) -> None:
        """Stop following."""
        await super().disconnect(code)
        self._leave()

    async def refresh(self) -> None:
        """Show what its person may see now; until that is known, nothing."""
        self._leave()
        await self._join(await self._seen())
        self._want_all()

    async def end(self) -> None:
        """Say so; the page asks for itself again, and says why."""
        self._leave()
        if not self.is_over:
            with suppress(OSError):
                await self.send_json({"type": "gone"})
        await super().end()

    def show(self, sight: SubscriptionKey, message: bytes) -> None:
        """Send this, or something newer, as soon as the line is free: a slow line is told less often."""
        self._newest[sight] = message
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_newest())

    async def _send_newest(self) -> None:
        while self._newest and not self.is_over:
            _, message = self._newest.popitem()
            with suppress(OSError):
                await self.send(bytes_data=message)
        self._sender = None

    async def _seen(self) -> Sequence[SubscriptionKey]:
        async with _lookup_slots():
            self.standing, found = await in_thread(partial(subscriptions.resolve, self.visitor, self.asked))
        return found

    async def _join(self, found: Sequence[SubscriptionKey]) -> Sequence[Subscription]:
        self._leave()
        self.shown = [subscription_registry().join(sight, self) for sight in found]
        await hub().ready()
        if self.is_over:  # the browser left meanwhile
            self._leave()
        return self.shown

    def _want_all(self) -> None:
        for shown in self.shown:
            shown.want(self)

    def _leave(self) -> None:
        for shown in self.shown:
            subscription_registry().leave(shown, self)
        self.shown = ()


class LogConsumer(GuardedConsumer):
    """Follows one pod's log from a byte offset, until it is complete."""

    user: User
    _follower: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Check the person, then follow."""
        self.pod_id = int(self.scope["url_route"]["kwargs"]["pod_id"])
        await self.refresh()
        self._follower = asyncio.create_task(self._follow(_parse_number(self.params.get("offset", ""))))

    async def disconnect(self, code: int) -> None:
        """Stop following."""
        await super().disconnect(code)
        self._stop()

    async def refresh(self) -> None:
        """Whether they may see the pod is asked at each reading, as whom they are now."""
        async with _lookup_slots():
            self.standing, self.user = await in_thread(partial(subscriptions.authorize, self.visitor))

    async def end(self) -> None:
        """Read nothing more."""
        self._stop()
        await super().end()

    def _stop(self) -> None:
        if self._follower is not None:
            self._follower.cancel()

    async def _follow(self, offset: int) -> None:
        first = True
        while True:
            try:
                chunk = await in_thread(partial(logs.read, self.pod_id, self.user, offset))
            except NotFound:
                await self._close(UNKNOWN)
                return
            except DatabaseError:
                await self._close(TRY_AGAIN)
                return
            if chunk.text or chunk.complete or first:
                await self.send_json(
                    {
                        "type": "log",
                        "offset": chunk.offset,
                        "next": chunk.next_offset,
                        "text": chunk.text,
                        "complete": chunk.complete,
                    }
                )
            if chunk.complete:
                return
            first, offset = False, chunk.next_offset
            await asyncio.sleep(0 if chunk.is_full else logs.LOOK_EVERY_SECONDS)


async def _visitor_of(scope: Mapping[str, Any]) -> Visitor | None:
    """Who is signed in. Their rights are asked anew each time: they may be taken while the socket is open."""
    user, session = scope["user"], scope.get("session")
    if user is None or not user.is_authenticated:
        return None
    if session is None:
        return Visitor(user.pk, None)
    return Visitor(user.pk, session.session_key, await session.aget(acting.KEY))


def _parse_number(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 19 else 0  # noqa: PLR2004
