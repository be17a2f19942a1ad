"""The websockets of pages: one sends renderings, the other follows a pod's log."""

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
from hekla.apps.impersonation import selectors as impersonation
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.domain.errors import NotFound
from hekla.live import logs, subscriptions
from hekla.live.guard import Visitor, guard
from hekla.live.hub import hub
from hekla.live.instruments import OPEN_SOCKETS
from hekla.live.renderings import Subscription, subscription_registry
from hekla.live.subscriptions import LiveQuery, SubscriptionKey
from hekla.live.threads import in_thread, per_loop

log = logging.getLogger(__name__)
UNKNOWN, NOT_SIGNED_IN, TOO_MANY, TRY_AGAIN = 4404, 4401, 4429, 1013
MAX_SOCKETS = 100
"""Open sockets of one person in this process. Each open page has one, and each open log."""
_lookup_slots = per_loop(partial(asyncio.Semaphore, 2))
"""Limits how many sockets look up their roles at once, so that open pages still get their renderings."""


class GuardedConsumer(AsyncJsonWebsocketConsumer):
    """A socket that closes as soon as its person loses the permission to see the page."""

    visitor: Visitor
    roles: RoleSnapshot | None = None
    is_closed = False

    async def __call__(self, *asgi: Any) -> None:  # noqa: ANN401  (scope, receive, send)
        """Serve the socket, and count it while it is open."""
        with OPEN_SOCKETS.track_inprogress():
            await super().__call__(*asgi)

    async def connect(self) -> None:
        """Accept the socket, check the person, then call `begin`."""
        self.params = dict(parse_qsl(self.scope["query_string"].decode(errors="replace")))
        await self.accept()
        visitor = await _visitor_of(self.scope)
        if visitor is None:
            await self._close(NOT_SIGNED_IN)
            return
        if guard().count(visitor.person) >= MAX_SOCKETS:
            await self._close(TOO_MANY)
            return
        self.visitor = visitor
        guard().watch(self)
        if not await self._is_allowed(self.begin):
            await self._close(UNKNOWN)

    async def begin(self) -> None:
        """Start sending to a signed-in person. Raises NotFound without permission."""
        raise NotImplementedError

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Stop following."""
        self._finish()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_kwargs: Any) -> None:  # noqa: ANN401
        """Ignore the frame without reading it: pages only receive."""

    async def end(self) -> None:
        """Close the socket: its person has lost the permission."""
        await self._close(UNKNOWN)

    async def reauthorize(self) -> None:
        """Look up the permissions again. End the socket if the person can see nothing."""
        if not await self._is_allowed(self.refresh):
            await self.end()

    async def refresh(self) -> None:
        """Continue with the present roles. Raises NotFound if the person has lost the permission."""
        raise NotImplementedError

    async def _is_allowed(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run `work`. False if it raises NotFound: the person has no permission.

        If the database does not answer, the socket is closed, and the browser reconnects.
        """
        try:
            await work()
        except NotFound:
            return False
        except DatabaseError as error:
            log.warning("cannot look up what a page may show: %s", error)
            await self._close(TRY_AGAIN)
        return True

    async def _close(self, code: int) -> None:
        if not self.is_closed:
            self._finish()
            with suppress(OSError):  # the browser has disconnected
                await self.close(code)

    def _finish(self) -> None:
        self.is_closed = True
        if hasattr(self, "visitor"):
            guard().leave(self)


class PageConsumer(GuardedConsumer):
    """Sends a page's live parts whenever one of its topics changes.

    The page sends the number of the last event that it includes (`since`). If there are newer events, its parts are
    sent at once: a rendering shows the present state, so one message replaces all missed ones. Each message has the
    number of the last event that it includes.
    """

    subscriptions: Sequence[Subscription] = ()
    _sender: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Subscribe to the view. Send the parts at once if the page is behind."""
        self._newest: dict[SubscriptionKey, bytes] = {}
        self.query = LiveQuery.parse(self.params)
        joined = await self._join(await self._resolve())
        since = _parse_number(self.params.get("since", ""))
        own = [one for one in joined if not one.key.is_side_view]
        topics = frozenset[str]().union(*(one.topics for one in own))
        async with _lookup_slots():
            missed = await in_thread(partial(event_log.count_after, since, topics))
        if missed:
            await self.send_json({"type": "behind", "events": missed, "parts": len(own)})
            self._request_all()
        else:
            await self.send_json({"type": "hello", "seq": since, "parts": len(own)})

    async def disconnect(self, code: int) -> None:
        """Stop following."""
        await super().disconnect(code)
        self._leave()

    async def refresh(self) -> None:
        """Subscribe again with the present roles. Nothing is sent until these are known."""
        self._leave()
        await self._join(await self._resolve())
        self._request_all()

    async def end(self) -> None:
        """Tell the page to reload, which then shows the reason, and close."""
        self._leave()
        if not self.is_closed:
            with suppress(OSError):
                await self.send_json({"type": "gone"})
        await super().end()

    def show(self, key: SubscriptionKey, message: bytes) -> None:
        """Send this or a newer rendering when the connection is free. A slow connection gets fewer renderings."""
        self._newest[key] = message
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_newest())

    async def _send_newest(self) -> None:
        while self._newest and not self.is_closed:
            _, message = self._newest.popitem()
            with suppress(OSError):
                await self.send(bytes_data=message)
        self._sender = None

    async def _resolve(self) -> Sequence[SubscriptionKey]:
        async with _lookup_slots():
            self.roles, keys = await in_thread(partial(subscriptions.resolve, self.visitor, self.query))
        return keys

    async def _join(self, keys: Sequence[SubscriptionKey]) -> Sequence[Subscription]:
        self._leave()
        self.subscriptions = [subscription_registry().join(key, self) for key in keys]
        await hub().ready()
        if self.is_closed:  # the browser disconnected while this waited
            self._leave()
        return self.subscriptions

    def _request_all(self) -> None:
        for subscription in self.subscriptions:
            subscription.request(self)

    def _leave(self) -> None:
        for subscription in self.subscriptions:
            subscription_registry().leave(subscription, self)
        self.subscriptions = ()


class LogConsumer(GuardedConsumer):
    """Follows one pod's log from a byte offset, until it is complete."""

    user: User
    _follower: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Check the person, then follow the log."""
        self.pod_id = int(self.scope["url_route"]["kwargs"]["pod_id"])
        await self.refresh()
        self._follower = asyncio.create_task(self._follow(_parse_number(self.params.get("offset", ""))))

    async def disconnect(self, code: int) -> None:
        """Stop following."""
        await super().disconnect(code)
        self._stop()

    async def refresh(self) -> None:
        """Look up the present roles and user. Each read checks the permission for the pod."""
        async with _lookup_slots():
            self.roles, self.user = await in_thread(partial(subscriptions.authorize, self.visitor))

    async def end(self) -> None:
        """Stop reading, and close the socket."""
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
                        "times": chunk.times,
                    }
                )
            if chunk.complete:
                return
            first, offset = False, chunk.next_offset
            await asyncio.sleep(0 if chunk.is_full else logs.LOOK_EVERY_SECONDS)


async def _visitor_of(scope: Mapping[str, Any]) -> Visitor | None:
    """The signed-in person, or None. Their roles are not included, because they can change while the socket is open."""
    user, session = scope["user"], scope.get("session")
    if user is None or not user.is_authenticated:
        return None
    if session is None:
        token = scope.get("token")
        return Visitor(user.pk, None, token=token.pk if token else None)
    return Visitor(user.pk, session.session_key, await session.aget(impersonation.KEY))


def _parse_number(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 19 else 0  # noqa: PLR2004
