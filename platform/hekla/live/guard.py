"""Checks, once for all sockets of this process, whether the people behind them may still look on.

Every two seconds one query answers for all of them: who may still sign in, whose session goes on, and which roles they
have. A socket whose person may not look on is ended; one whose roles changed looks up again what it may show. Events
that change rights only make the check come at once; it is right without them.
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
from hekla.apps.tenancy.selectors import RoleSnapshot
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
    """A person, their login session if there is one, and the impersonation that it is in."""

    person: int
    session: str | None
    acting: int | None = None


class Guarded(Protocol):
    """A socket. `standing`: its person's roles when it last looked up what it may show; None if it never did."""

    visitor: Visitor
    standing: RoleSnapshot | None

    async def end(self) -> None:
        """Close: its person may not look on any more."""

    async def reauthorize(self) -> None:
        """Look up what its person may see now."""


class Guard:
    """The guard of this process."""

    def __init__(self) -> None:
        self._sockets: dict[Visitor, set[Guarded]] = {}
        self._proofs: dict[str, str] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    def watch(self, socket: Guarded) -> None:
        """Check this socket from now on."""
        self._sockets.setdefault(socket.visitor, set()).add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def leave(self, socket: Guarded) -> None:
        """Check this socket no more."""
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

    def check_now(self) -> None:
        """Check at once."""
        self._wake.set()

    async def check(self) -> None:
        """End the sockets whose people may not look on any more, and reauthorize those whose roles changed."""
        async with self._one_at_a_time:
            visitors = tuple(self._sockets)
            standings, self._proofs = await in_thread(partial(_look_up, visitors, self._proofs))
        actions = (action for visitor in visitors for action in self._actions(visitor, standings.get(visitor)))
        for failed in filter(None, await asyncio.gather(*actions, return_exceptions=True)):
            log.error("a page could not be ended or reauthorized", exc_info=failed)

    def _actions(self, visitor: Visitor, standing: RoleSnapshot | None) -> Iterator[Coroutine[Any, Any, None]]:
        for socket in tuple(self._sockets.get(visitor, ())):
            if standing is None:
                yield socket.end()
            elif socket.standing not in (None, standing):
                yield socket.reauthorize()

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.check()
            except DatabaseError as error:
                log.warning("cannot ask who may look on now: %s", error)


def _look_up(
    visitors: Collection[Visitor], known: Mapping[str, str]
) -> tuple[dict[Visitor, RoleSnapshot], dict[str, str]]:
    """The roles of each visitor who may still look on, and what proves their sessions."""
    now, sessions = clock.now(), {one.session: one.person for one in visitors if one.session is not None}
    proofs = visits.proofs(sessions, known=known, now=now)
    lasting = [one for one in visitors if one.session is None or one.session in proofs]
    persons = {one: person for one in lasting if (person := acting.visible_person(one.person, one.acting, now=now))}
    standings = tenancy.standings(set(persons.values()))
    return {one: standings[person] for one, person in persons.items() if person in standings}, proofs


guard = per_loop(Guard)
