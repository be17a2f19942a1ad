"""The sockets of pages: one that sends renderings, one that follows a pod's log."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.utils import translation

from hekla.apps.accounts import selectors as accounts
from hekla.apps.outbox import selectors as outbox
from hekla.backends.logs import LogText
from hekla.domain.errors import NotFound
from hekla.live import logs, registry
from hekla.live.hub import Subscription, hub

_GATHER_SECONDS = 0.05
_RIGHTS_EVERY_SECONDS = 5.0
UNKNOWN, NOT_SIGNED_IN = 4404, 4401


class PageConsumer(AsyncJsonWebsocketConsumer):
    """Sends a page's live parts whenever something that concerns it happened.

    The page says the number it was rendered at (`since`). What happened in between is sent at once: a rendering is the
    present state, so however much was missed one message makes the page right. Each carries a number at or below
    which nothing is missing from it.
    """

    person: int | None = None
    subscription: Subscription | None = None
    sender: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Check the person and the view, then follow."""
        self.params = dict(parse_qsl(self.scope["query_string"].decode(errors="replace")))
        self.language = self.scope.get("cookies", {}).get("django_language", "en")
        await self.accept()
        self.person = _person(self.scope)
        if self.person is None:
            await self.close(NOT_SIGNED_IN)
            return
        try:
            self.view = registry.find(self.params.get("view", ""))
            topics = await database_sync_to_async(self._topics)()
        except NotFound:
            await self.close(UNKNOWN)
            return
        self.subscription = await hub().join(topics)
        self.sender = asyncio.create_task(self._send_changes(_whole(self.params.get("since", ""))))

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Stop following."""
        if self.sender is not None:
            self.sender.cancel()
        if self.subscription is not None:
            await hub().leave(self.subscription)

    async def receive_json(self, content: Any, **_kwargs: Any) -> None:  # noqa: ANN401
        """Pages only listen."""

    async def _send_changes(self, since: int) -> None:
        assert self.subscription is not None  # noqa: S101
        missed = await database_sync_to_async(outbox.count_after)(since, self.subscription.topics)
        if missed:
            await self.send_json({"type": "behind", "events": missed})
            await self._send_rendering()
        else:
            await self.send_json({"type": "hello", "seq": since})
        while True:
            try:
                await asyncio.wait_for(self.subscription.wait(), _RIGHTS_EVERY_SECONDS)
            except TimeoutError:
                if not await self._still_allowed():
                    return
                continue
            await self._send_rendering()
            await asyncio.sleep(_GATHER_SECONDS)

    async def _send_rendering(self) -> None:
        try:
            number, html = await database_sync_to_async(self._render)()
        except NotFound:
            await self._say_gone()
            return
        await self.send_json({"type": "fragments", "seq": number, "html": html})

    def _render(self) -> tuple[int, str]:
        number = outbox.last_number()
        with translation.override(self.language):
            return number, self.view.render(accounts.active(self.person or 0), self.params)

    def _topics(self) -> frozenset[str]:
        return self.view.topics(accounts.active(self.person or 0), self.params)

    async def _still_allowed(self) -> bool:
        try:
            await database_sync_to_async(self._topics)()
        except NotFound:
            await self._say_gone()
            return False
        return True

    async def _say_gone(self) -> None:
        await self.send_json({"type": "gone"})
        await self.close(UNKNOWN)


class LogConsumer(AsyncJsonWebsocketConsumer):
    """Follows one pod's log from a byte offset, until it is complete."""

    person: int | None = None
    follower: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Check the person and the pod, then follow."""
        await self.accept()
        self.person = _person(self.scope)
        if self.person is None:
            await self.close(NOT_SIGNED_IN)
            return
        params = dict(parse_qsl(self.scope["query_string"].decode(errors="replace")))
        self.pod_id = int(self.scope["url_route"]["kwargs"]["pod_id"])
        self.follower = asyncio.create_task(self._follow(_whole(params.get("offset", ""))))

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Stop following."""
        if self.follower is not None:
            self.follower.cancel()

    async def receive_json(self, content: Any, **_kwargs: Any) -> None:  # noqa: ANN401
        """Log views only listen."""

    async def _follow(self, offset: int) -> None:
        first = True
        while True:
            try:
                chunk = await database_sync_to_async(
                    lambda at=offset: logs.read(self.pod_id, accounts.active(self.person or 0), at)
                )()
            except NotFound:
                await self.close(UNKNOWN)
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

    def _read(self, offset: int) -> LogText:
        return logs.read(self.pod_id, accounts.active(self.person or 0), offset)


def _person(scope: Mapping[str, Any]) -> int | None:
    """The id of who is signed in. Rights are asked anew each time: they may be taken while the socket is open."""
    user = scope["user"]
    return user.pk if user is not None and user.is_authenticated else None


def _whole(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 19 else 0  # noqa: PLR2004
