"""Admissions: who uses which session now, and whether they still may. Requests and websockets pass the same check.

An admission is checked when it begins, and again for each request after two seconds. While anything of it is open, the
guard of all sockets checks the person, their login session and their roles, and a task here the session and its pod.
What is open ends with the right to it, within seconds.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from django.db import DatabaseError
from redis.exceptions import RedisError

from hekla.apps.accounts.models import User
from hekla.apps.sharing import selectors as sharing
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.apps.workbench import browsers, entry, selectors
from hekla.apps.workbench.entry import EntryPass
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.domain.errors import NotFound
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.live import subscriptions
from hekla.live.guard import Visitor, guard
from hekla.live.logs import backend_of, key_of
from hekla.live.proxy.headers import Destination
from hekla.live.proxy.presence import report
from hekla.live.proxy.upstream import IDLE_SECONDS, UpstreamPool
from hekla.live.threads import in_thread, per_loop

log = logging.getLogger(__name__)
VALID_SECONDS = 2.0
"""How long a request relies on the last check."""
LOOK_EVERY_SECONDS = 2.0
FORGET_SECONDS = 15.0
"""How long an admission without open requests is remembered; its idle connections go with it."""
MAX_OPEN = 128
"""Requests and websockets of one admission at once."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to use a session (primary key), with where it leads. `pool`: new connections, not yet any."""

    roles: RoleSnapshot
    destination: Destination
    pool: UpstreamPool
    port: int
    session: int
    tool: Tool


class SessionAdmission:
    """A person in a session. The guard ends it like a page."""

    def __init__(self, entry: EntryPass, admissions: "Admissions") -> None:
        self.entry = entry
        self.visitor = Visitor(entry.person, entry.login, token=entry.token, guest=entry.guest)
        self.roles: RoleSnapshot | None = None
        self.grant: Grant | None = None
        self.checked_at = self.used_at = 0.0
        self.is_watched = self.has_ended = False
        self.open: set[asyncio.Task[object]] = set()
        self._admissions, self._check = admissions, asyncio.Lock()

    async def admit(self) -> Grant:
        """The grant, checked within the last two seconds. Raises NotFound, DatabaseError, RedisError."""
        self.used_at = time.monotonic()
        if self.grant is not None and not self.has_ended and self.used_at - self.checked_at < VALID_SECONDS:
            return self.grant
        async with self._check:
            if self.has_ended:
                raise NotFound("It has ended meanwhile.")
            if self.grant is None or time.monotonic() - self.checked_at >= VALID_SECONDS:
                await self._authorize()
            assert self.grant is not None  # noqa: S101  (set just now)
            return self.grant

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The present task uses the session, and is cancelled when the admission ends."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  (the caller is a coroutine)
        self.open.add(task)
        self._admissions.watch(self)
        try:
            yield
        finally:
            self.open.discard(task)
            self.used_at = time.monotonic()

    async def end(self) -> None:
        """End all that is open: the person has lost the right, or the session has ended."""
        self.has_ended = True
        self._admissions.forget(self)
        for task in tuple(self.open):
            task.cancel()

    async def reauthorize(self) -> None:
        """Look up the right again; end the admission without it."""
        try:
            async with self._check:
                await self._authorize()
        except NotFound:
            await self.end()
        except (DatabaseError, RedisError) as error:
            log.warning("cannot look up who may use a session: %s", error)

    async def _authorize(self) -> None:
        before = time.monotonic()
        grant = await in_thread(partial(_grant, self.entry, self.visitor))
        if self.grant is None or self.grant.destination != grant.destination or self.grant.port != grant.port:
            self.close_pool()
            self.grant = grant
        self.grant.pool.connect = grant.pool.connect
        self.roles, self.checked_at = grant.roles, before

    def close_pool(self) -> None:
        """Close its idle connections."""
        if self.grant is not None:
            self.grant.pool.close_idle()


class Admissions:
    """The admissions of one event loop."""

    def __init__(self) -> None:
        self._admissions: dict[str, SessionAdmission] = {}
        self._task: asyncio.Task[None] | None = None
        self._report: asyncio.Task[None] | None = None
        self._reported_at = 0.0

    async def find(self, slug: str, cookie: str, browser: str = "") -> tuple[SessionAdmission, Grant]:
        """The admission of this cookie to this session. `browser`: its cookie on a shared host.

        Raises NotFound without the right, DatabaseError, RedisError.
        """
        admission = self._admissions.get(cookie)
        if admission is None or admission.entry.slug != slug:
            found = EntryPass.decrypt(cookie)
            if found is None or found.slug != slug:
                raise NotFound("No pass for this session.")
            same = (one for one in self._admissions.values() if one.entry == found)  # with another ticket
            admission = next(same, None) or SessionAdmission(found, self)
        if not admission.entry.is_of(browser):
            raise NotFound("No pass of this browser.")
        try:
            grant = await admission.admit()
        except NotFound:
            await admission.end()
            raise
        known = self._admissions.setdefault(cookie, admission)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return known, known.grant or grant

    def watch(self, admission: SessionAdmission) -> None:
        """Let the guard check it while something is open."""
        if not admission.is_watched:
            admission.is_watched = True
            guard().watch(admission)

    def forget(self, admission: SessionAdmission) -> None:
        """Stop checking it."""
        for cookie in [cookie for cookie, one in self._admissions.items() if one is admission]:
            del self._admissions[cookie]
        if admission.is_watched:
            admission.is_watched = False
            guard().leave(admission)
        admission.close_pool()

    async def look(self) -> None:
        """Report who is here, end the admissions of ended sessions, and forget those that nobody uses."""
        oldest = time.monotonic() - FORGET_SECONDS
        self._begin_report()
        for admission in tuple(self._admissions.values()):
            if admission.grant is not None:
                admission.grant.pool.close_idle(IDLE_SECONDS)
            if not admission.open and admission.used_at < oldest:
                self.forget(admission)
        used = [admission for admission in self._admissions.values() if admission.open]
        if not used:
            return
        lasting = await in_thread(partial(_lasting, {admission.entry for admission in used}))
        for admission in used:
            if admission.entry not in lasting:
                await admission.end()

    def _begin_report(self) -> None:
        """Report who is here, unless the last report still waits for the cache: nothing else may wait for that."""
        if self._report is not None and not self._report.done():
            return
        monotonic = time.monotonic()
        used = [one for one in self._admissions.values() if one.open or one.used_at > self._reported_at]
        self._reported_at = monotonic
        if used:
            self._report = asyncio.create_task(report(used, now=clock.now(), monotonic=monotonic))

    async def _run(self) -> None:
        try:
            while self._admissions:
                await asyncio.sleep(LOOK_EVERY_SECONDS)
                try:
                    await self.look()
                except DatabaseError as error:
                    log.warning("cannot look up which sessions are open: %s", error)
        finally:
            self._task = None  # also after a mistake: the next request starts it again


def _lasting(entries: Set[EntryPass]) -> set[EntryPass]:
    """Those of these passes whose sessions are open, and that count in their browsers, as far as the cache knows."""
    slugs = selectors.still_open({one.slug for one in entries})
    lasting = {one for one in entries if one.slug in slugs}
    try:
        return browsers.current(lasting)
    except RedisError as error:
        log.warning("cannot look up which sessions are open in browsers: %s", error)
        return lasting


def _grant(found: EntryPass, visitor: Visitor) -> Grant:
    """The right to use a session, looked up now. Raises NotFound."""
    roles, user = subscriptions.authorize(visitor)
    if not browsers.current([found]):
        raise NotFound("Another session has been opened on this host.")
    session = _session(found, user)
    ports = backend_of(session.pod).port_forwarding
    if ports is None or session.state is not SessionState.READY:
        raise NotFound("The session is not ready.")
    connect = partial(ports.connect, key_of(session.pod), session.port)
    return Grant(roles, _destination(session), UpstreamPool(connect), session.port, session.pk, Tool(session.tool))


def _destination(session: ToolSession) -> Destination:
    """Where the session leads, with its secret as the tool demands it. JupyterLab knows the path at which it is."""
    host, secret = f"localhost:{session.port}".encode(), selectors.secret_of(session)
    if session.tool == Tool.TENSORBOARD:
        return Destination(host, prefix=f"/{secret}".encode())
    if session.tool == Tool.CODE_SERVER:
        return Destination(host, cookie=f"code-server-session={secret}".encode())
    prefix = entry.mount(session.slug) if session.tool == Tool.JUPYTERLAB else ""
    return Destination(host, secret=secret, prefix=prefix.encode())


def _session(found: EntryPass, user: User) -> ToolSession:
    """The session that this person opened, or to which they are invited. Raises NotFound."""
    if found.guest is None:
        return selectors.of_slug(found.slug, user)
    sharing.guest_of_session(found.slug, found.guest, user, now=clock.now())
    session = selectors.open_of_slug(found.slug)
    if session is None:
        raise NotFound("The session has ended.")
    return session


admissions = per_loop(Admissions)
