"""Checks whether the people of all open sockets of this process still have their permissions.

Every two seconds it looks up, for all sockets together, who can still sign in, which login sessions are valid, and the
roles of each person. It ends the sockets of people without permission, and reauthorizes sockets whose roles changed.
Events that change roles only trigger an earlier check; the check is correct without them.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from django.db import DatabaseError

from hekla.apps.accounts import selectors as accounts
from hekla.apps.impersonation import selectors as impersonation
from hekla.apps.login_sessions import selectors as login_sessions
from hekla.apps.sharing import selectors as sharing
from hekla.apps.signin import rule
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.lib import clock
from hekla.live.threads import in_thread, per_loop, release_threads

log = logging.getLogger(__name__)
EVERY_SECONDS = 2.0
RIGHTS_EVENTS = frozenset({
    *("MemberAdded", "MemberRemoved", "MemberRoleChanged", "TenantChanged", "DepartmentChanged"),
    *("UserChanged", "OtherSessionsRevoked", "PasswordChanged", "SecondFactorRemoved", "SecurityKeyRemoved"),
    *("TokenRevoked", "GuestEnded"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Visitor:
    """The ids of a person, of their login session if any, of its impersonation if any, and of their token instead.

    `guest`: the invitation that the socket depends on, if it does.
    """

    person: int
    session: str | None
    impersonation: int | None = None
    token: int | None = None
    guest: int | None = None


class Guarded(Protocol):
    """A socket. `roles`: its person's roles at the last look-up of permissions; None before the first."""

    visitor: Visitor
    roles: RoleSnapshot | None

    async def end(self) -> None:
        """Close the socket: its person has lost the permission."""

    async def reauthorize(self) -> None:
        """Look up the permissions of its person again."""


class Guard:
    """Checks the sockets of one event loop."""

    def __init__(self) -> None:
        self._sockets: dict[Visitor, set[Guarded]] = {}
        self._proofs: dict[str, str] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    def watch(self, socket: Guarded) -> None:
        """Start checking this socket."""
        self._sockets.setdefault(socket.visitor, set()).add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def count(self, person: int) -> int:
        """The number of open sockets of a person."""
        return sum(len(sockets) for visitor, sockets in self._sockets.items() if visitor.person == person)

    def leave(self, socket: Guarded) -> None:
        """Stop checking this socket."""
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
        """Trigger a check now."""
        self._wake.set()

    async def check(self) -> None:
        """End the sockets of people without permission, and reauthorize sockets whose roles changed."""
        async with self._one_at_a_time:
            visitors = tuple(self._sockets)
            role_snapshots, self._proofs = await in_thread(partial(_look_up, visitors, self._proofs))
        actions = (action for visitor in visitors for action in self._actions(visitor, role_snapshots.get(visitor)))
        for failed in filter(None, await asyncio.gather(*actions, return_exceptions=True)):
            log.error("a page could not be ended or reauthorized", exc_info=failed)

    def _actions(self, visitor: Visitor, roles: RoleSnapshot | None) -> Iterator[Coroutine[Any, Any, None]]:
        for socket in tuple(self._sockets.get(visitor, ())):
            if roles is None:
                yield socket.end()
            elif socket.roles not in (None, roles):
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
    """The roles of each visitor with a valid session or token and a second factor if it is required, and the
    fingerprints of the valid sessions.

    Sessions whose fingerprint is in `known` are not decoded again.
    """
    now, sessions = clock.now(), {one.session: one.person for one in visitors if one.session is not None}
    session_fingerprints = login_sessions.session_fingerprints(sessions, known=known, now=now)
    barred = rule.without_required_factor({one.person for one in visitors})
    tokens = accounts.tokens_in_force({one.token for one in visitors if one.token is not None}, now=now)
    guests = sharing.in_force({one.guest for one in visitors if one.guest is not None}, now=now)
    lasting = [
        one
        for one in visitors
        if (one.session is None or one.session in session_fingerprints)
        and (one.token is None or one.token in tokens)
        and (one.guest is None or one.guest in guests)
        and one.person not in barred
    ]
    persons = {
        one: person
        for one in lasting
        if (person := impersonation.visible_person(one.person, one.impersonation, now=now))
    }
    role_snapshots = tenancy.role_snapshots(set(persons.values()))
    return {
        one: role_snapshots[person] for one, person in persons.items() if person in role_snapshots
    }, session_fingerprints


guard = per_loop(Guard)
