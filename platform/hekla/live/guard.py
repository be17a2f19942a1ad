"""Watches, once for all sockets of this process, whether those behind them may still look on.

Each second or two it asks the database about all of them at once: who may still sign in, whose session goes on, and
what their rights follow from. Whoever may not look on any more is told to go, and whose rights are others now asks
anew what they may see. An event that takes rights only makes it look at once: none has to be known for it to be right.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from django.db import DatabaseError

from hekla.apps.impersonation import selectors as acting
from hekla.apps.login_sessions import selectors as visits
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Standing
from hekla.lib import clock
from hekla.live.threads import in_thread, per_loop, release_threads

log = logging.getLogger(__name__)
EVERY_SECONDS = 2.0
RIGHTS_EVENTS = frozenset({
    *("MemberAdded", "MemberRemoved", "MemberRoleChanged", "TenantChanged", "DepartmentChanged"),
    *("UserChanged", "OtherSessionsRevoked"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks on, the session that they came with, if it was one, and the acting for another that it is in."""

    person: int
    session: str | None
    acting: int | None = None


class Guarded(Protocol):
    """A socket. `standing`: what its person's rights followed from when it last asked what it may see, if it did."""

    visitor: Visitor
    standing: Standing | None

    async def end(self) -> None:
        """Its person may not look on any more."""

    async def look_again(self) -> None:
        """Its person's rights follow from something else now."""


class Guard:
    """The one of this process."""

    def __init__(self) -> None:
        self._sockets: dict[Visitor, set[Guarded]] = {}
        self._proofs: dict[str, str] = {}
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    def watch(self, socket: Guarded) -> None:
        """Watch over this socket from now on."""
        self._sockets.setdefault(socket.visitor, set()).add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._keep_looking())

    def leave(self, socket: Guarded) -> None:
        """It is closed."""
        left = self._sockets.get(socket.visitor, set())
        left.discard(socket)
        if not left:
            self._sockets.pop(socket.visitor, None)
        if not self._sockets:
            self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        release_threads()

    def hurry(self) -> None:
        """Look at once."""
        self._hurry.set()

    async def look(self) -> None:
        """Tell those who may not look on any more, or not the same."""
        async with self._one_at_a_time:
            asked = tuple(self._sockets)
            standings, self._proofs = await in_thread(partial(_look_up, asked, self._proofs))
        words = (word for visitor in asked for word in self._words(visitor, standings.get(visitor)))
        for failed in filter(None, await asyncio.gather(*words, return_exceptions=True)):
            log.error("a page could not be told what it may show", exc_info=failed)

    def _words(self, visitor: Visitor, standing: Standing | None) -> Iterator[Coroutine[Any, Any, None]]:
        for socket in tuple(self._sockets.get(visitor, ())):
            if standing is None:
                yield socket.end()
            elif socket.standing not in (None, standing):
                yield socket.look_again()

    async def _keep_looking(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._hurry.wait()
            self._hurry.clear()
            try:
                await self.look()
            except DatabaseError as error:
                log.warning("cannot ask who may look on now: %s", error)


def _look_up(visitors: Collection[Visitor], known: Mapping[str, str]) -> tuple[dict[Visitor, Standing], dict[str, str]]:
    """The standing of each who may still look on, and what proves their sessions."""
    now, sessions = clock.now(), {one.session: one.person for one in visitors if one.session is not None}
    proofs = visits.proofs(sessions, known=known, now=now)
    lasting = [one for one in visitors if one.session is None or one.session in proofs]
    seen_as = {one: person for one in lasting if (person := acting.seen_as(one.person, one.acting, now=now))}
    standings = tenancy.standings(set(seen_as.values()))
    return {one: standings[person] for one, person in seen_as.items() if person in standings}, proofs


guard = per_loop(Guard)
