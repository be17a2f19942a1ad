"""One terminal in a pod: it runs a shell, and pages come and go."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from uuid import UUID, uuid4

from django.db import DatabaseError

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import services as sharing
from hekla.apps.sharing.models import OpenTerminal
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.backends.base import BackendError
from hekla.backends.streams import PodCommand
from hekla.domain.errors import HeklaError
from hekla.domain.events import TerminalEnd
from hekla.domain.idleness import Signal
from hekla.lib import clock
from hekla.live.activity import meter
from hekla.live.guard import Visitor, guard
from hekla.live.terminals import claims
from hekla.live.terminals.output import RollingOutput
from hekla.live.terminals.recorder import Recorder, begin_recorder
from hekla.live.threads import in_thread

log = logging.getLogger(__name__)
SHELL = ("sh", "-c", 'exec "$(command -v bash || echo sh)"')
SCROLLBACK_BYTES = 1024 * 1024
MAX_BYTES_PER_SECOND = 2 * 1024 * 1024
"""Output beyond it waits in the pod, whose program then waits too."""
_PAUSE_SECONDS = 0.002
"""After each piece of output, so that a program that prints byte by byte leaves the process to others."""
MAX_PENDING_INPUT = 256 * 1024
DETACHED_SECONDS = 30 * 60.0
"""How long a terminal goes on that no page shows."""
IDLE_SECONDS = 8 * 3600.0
"""How long it goes on without a keystroke."""
LOOK_EVERY_SECONDS = 10.0
HANG_UP, HANG_UP_SECONDS = b"\x03\x04", 0.5
"""Ctrl+C for the program in the foreground, Ctrl+D for the shell."""
SIDES = (2, 500)
"""The smallest and the largest number of columns or rows."""


class TerminalPage(Protocol):
    """An open page that shows a terminal."""

    visitor: Visitor
    user: User
    may_type: bool

    def wake(self) -> None:
        """There is new output."""

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send this message; an end after all output."""

    async def end(self) -> None:
        """Close it."""


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """The size of a terminal."""

    columns: int = 80
    rows: int = 24

    @staticmethod
    def clamp(columns: int, rows: int) -> "TerminalSize":
        """The nearest possible size."""
        low, high = SIDES
        return TerminalSize(min(max(columns, low), high), min(max(rows, low), high))


class Terminal:
    """A shell in a pod, for its owner and for those who watch. The guard ends it like a page of its owner.

    `on_end`: called once it has ended, or does not open.
    """

    def __init__(self, pod: Pod, page: TerminalPage, roles: RoleSnapshot | None, on_end: Callable[[], None]) -> None:
        self.id: UUID = uuid4()
        self.pod, self.owner = pod, page.user
        self.visitor, self.roles = page.visitor, roles
        self.output = RollingOutput(SCROLLBACK_BYTES)
        self.size = TerminalSize()
        self.holder: TerminalPage | None = None
        self.pages: list[TerminalPage] = []
        self.ending: tuple[TerminalEnd, int | None] | None = None
        self._on_end = on_end
        self._command: PodCommand | None = None
        self._pending: asyncio.Queue[bytes] = asyncio.Queue()
        self._pending_bytes, self._drops_input = 0, False
        self._guests: dict[int, asyncio.Task[None]] = {}
        """The other people who typed, and what records that."""
        self._row: OpenTerminal | None = None
        self.recorder: Recorder | None = None
        self._one_recorder = asyncio.Lock()
        self._leaving: list[asyncio.Task[None]] = []
        self._opened_at = self._typed_at = self._left_at = time.monotonic()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    async def open(self, command: AbstractAsyncContextManager[PodCommand]) -> None:
        """Start the shell, and record that. Raises BackendError or HeklaError if that is not possible."""
        self._task = asyncio.create_task(self._live(command))
        await self.opened()

    def refuse(self, error: Exception) -> None:
        """It does not open, because of this error."""
        self._on_end()
        self._opened.set_exception(error)
        self._opened.exception()  # others may wait for it, or nobody

    async def opened(self) -> None:
        """Wait until the shell runs. Raises as `open` does."""
        await asyncio.shield(self._opened)

    async def closed(self) -> None:
        """Wait until it has ended, and that is recorded."""
        if self._task is not None:
            await asyncio.wait([self._task])

    # What pages do

    def join(self, page: TerminalPage) -> None:
        """Show it on one more page. The newest page of its owner stands for the owner's login."""
        self.pages.append(page)
        if self.recorder is not None and not self.recorder.is_open:
            self._send_guests_away()  # it has stopped since the page was admitted
        if self.ending is None and page.user.pk == self.owner.pk and page.visitor != self.visitor:
            guard().leave(self)
            self.visitor = page.visitor
            guard().watch(self)
        if self.ending is not None:
            page.tell(self._end_message())
        if page.user.pk == self.owner.pk and (self.holder is None or self.holder.user.pk == self.owner.pk):
            self.holder = page
        self.announce()

    async def admit(self, user: User) -> None:
        """Let this person in. If it is another than the owner, the terminal is recorded from now on.

        Raises Refused if it cannot be recorded: nothing is shared without a record. Raises as `open` does.
        """
        if user.pk == self.owner.pk:
            return
        await self.opened()
        assert self._row is not None  # noqa: S101  (it has opened)
        async with self._one_recorder:
            if self.recorder is None:
                size = (self.size.columns, self.size.rows)
                self.recorder = await begin_recorder(self._row, size, user, self._send_guests_away)
                if self.ending is not None:  # meanwhile, so nobody else closes it
                    await self.recorder.close()
            self.recorder.require_room()
        self.recorder.note_person(user.username)
        self.announce()

    def _send_guests_away(self) -> None:
        """The recording is full or cannot be written: from now on only the owner is here."""
        for page in [one for one in self.pages if one.user.pk != self.owner.pk]:
            self._leaving.append(asyncio.create_task(page.end()))
        self.announce()

    def leave(self, page: TerminalPage) -> None:
        """A page has gone. What runs goes on."""
        if page in self.pages:
            self.pages.remove(page)
            self._left_at = time.monotonic()
            if self.holder is page:
                own = [one for one in self.pages if one.user.pk == self.owner.pk]
                self.holder = own[-1] if own else None
            self.announce()

    def take_keyboard(self, page: TerminalPage) -> None:
        """Give the keyboard to this page, which everybody sees."""
        if self.holder is not page and page.may_type:
            self.holder = page
            self.announce()

    def type(self, page: TerminalPage, data: bytes) -> None:
        """Type these bytes. Those of a page without the keyboard are dropped, unless its person holds it elsewhere.

        If too many wait for the program, the rest is dropped until it has read all: no gaps in what it gets.
        """
        if not page.may_type:
            return
        before = self.holder.user if self.holder else self.owner
        if self.holder is not page and before.pk == page.user.pk:
            self.take_keyboard(page)
        if self.holder is not page:
            return
        self._drops_input = bool(self._pending_bytes) and self._drops_input
        if self._drops_input or self._pending_bytes + len(data) > MAX_PENDING_INPUT:
            self._drops_input = True
            page.tell({"type": "full"})
            return
        if page.user.pk != self.owner.pk and page.user.pk not in self._guests:
            self._guests[page.user.pk] = asyncio.create_task(self._record_guest(page.user))
        self._typed_at = time.monotonic()
        meter().of_person(self.pod.pk, self.owner.pk, Signal.TERMINAL, len(data))
        self._pending_bytes += len(data)
        self._pending.put_nowait(data)

    def print_line(self, text: str) -> None:
        """Show a line of the console on all pages, between the output of the program."""
        self.output.append(f"\r\n\x1b[7m {text} \x1b[0m\r\n".encode())
        for page in self.pages:
            page.wake()

    async def resize(self, page: TerminalPage, size: TerminalSize) -> None:
        """Set the size, if this page holds the keyboard."""
        if self.holder is page and size != self.size and self._command is not None:
            self.size = size
            if self.recorder is not None:
                self.recorder.resize(size.columns, size.rows)
            with suppress(BackendError):  # its end follows
                await self._command.resize(size.columns, size.rows)
            self._tell({"type": "size", "columns": size.columns, "rows": size.rows})

    def announce(self) -> None:
        """Tell every page who is here, and who holds the keyboard."""
        for page in self.pages:
            page.tell({
                "type": "people",
                "is_recorded": self.recorder is not None and self.recorder.is_open,
                "people": [
                    {
                        "name": str(one.user),
                        "is_me": one is page,
                        "is_own": one.user.pk == page.user.pk,
                        "holds": one is self.holder,
                        "may_type": one.may_type,
                    }
                    for one in self.pages
                ],
            })  # fmt: skip

    def stop(self, reason: TerminalEnd) -> None:
        """End it for this reason."""
        if self.ending is None and self._task is not None:
            self.ending = (reason, None)
            self._task.cancel()

    # What the guard does: the socket's interface

    async def end(self) -> None:
        """Its owner has lost the permission."""
        self.stop(TerminalEnd.RIGHTS)

    async def reauthorize(self) -> None:
        """Look again: the roles of its owner have changed: end it unless they may still run commands in the pod."""
        try:
            self.roles = await in_thread(partial(_check, self.pod.pk, self.owner))
        except HeklaError:
            await self.end()
        except DatabaseError as error:
            log.warning("cannot look up who may use a terminal: %s", error)

    # Its life

    async def _live(self, command: AbstractAsyncContextManager[PodCommand]) -> None:
        reason, exit_code = TerminalEnd.POD, None
        try:
            async with command as running:
                self._row = await in_thread(
                    partial(sharing.open_terminal, self.pod.pk, self.id, user=self.owner, now=clock.now())
                )
                self._command = running
                self._opened.set_result(None)
                guard().watch(self)
                async with _beside(self._type_all(running), self._watch_idleness()), _hung_up(running):
                    await self._follow(running)
                reason, exit_code = TerminalEnd.EXIT, running.exit_code
        except (BackendError, HeklaError, DatabaseError) as error:
            if not self._opened.done():
                self._opened.set_exception(error)
        except asyncio.CancelledError:
            reason = self.ending[0] if self.ending else TerminalEnd.STOPPED
        finally:
            was_open = self._command is not None
            self._command, self.ending = None, (reason, exit_code)
            self._on_end()
            self._tell(self._end_message())
            await claims.release(self.pod.pk, self.owner.pk, self.id)
            if was_open:
                await self._record_end(reason, exit_code)
            elif not self._opened.done():
                self._opened.set_exception(BackendError("The console stopped"))
            guard().leave(self)

    async def _record_end(self, reason: TerminalEnd, exit_code: int | None) -> None:
        seconds, owner = time.monotonic() - self._opened_at, actor_of(self.owner)
        facts: dict[str, Any] = {"exit_code": exit_code, "seconds": seconds, "owner": owner, "now": clock.now()}
        if self.recorder is not None:
            await self.recorder.close()
        try:
            await in_thread(partial(services.record_terminal_end, self.pod, self.id, reason, **facts))
            if self._row is not None:
                await in_thread(partial(sharing.close_terminal, self._row, now=clock.now()))
        except DatabaseError as error:
            log.warning("the end of a terminal could not be recorded: %s", error)

    async def _record_guest(self, user: User) -> None:
        try:
            if self._row is not None:
                await in_thread(partial(sharing.record_guest, self._row, user=user, now=clock.now()))
        except (HeklaError, DatabaseError) as error:
            log.warning("a person in the terminal of another could not be recorded: %s", error)

    async def _follow(self, command: PodCommand) -> None:
        """Take the output until the shell ends, at most so many bytes a second."""
        second, count = time.monotonic(), 0
        while (piece := await command.receive()) is not None:
            self.output.append(piece.data)
            if self.recorder is not None:
                self.recorder.output(piece.data)
            for page in self.pages:
                page.wake()
            count += len(piece.data)
            if count >= MAX_BYTES_PER_SECOND:
                await asyncio.sleep(max(0.0, second + 1 - time.monotonic()))
            else:
                await asyncio.sleep(_PAUSE_SECONDS)
            if time.monotonic() >= second + 1:
                second, count = time.monotonic(), 0

    async def _type_all(self, command: PodCommand) -> None:
        while True:
            data = await self._pending.get()
            with suppress(BackendError):  # its end follows
                await command.send(data)
            self._pending_bytes -= len(data)

    async def _watch_idleness(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            now = time.monotonic()
            if now > self._typed_at + IDLE_SECONDS or (not self.pages and now > self._left_at + DETACHED_SECONDS):
                self.stop(TerminalEnd.IDLE)
            await claims.renew(self.pod.pk, self.owner.pk, self.id)

    def _end_message(self) -> Mapping[str, Any]:
        reason, exit_code = self.ending or (TerminalEnd.POD, None)
        return {"type": "ended", "reason": reason, "exit_code": exit_code}

    def _tell(self, message: Mapping[str, Any]) -> None:
        for page in self.pages:
            page.tell(message)


@asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these beside the block, and cancel them at its end."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def _hung_up(command: PodCommand) -> AsyncIterator[None]:
    """If the block is cancelled, ask the shell to end: not every backend ends it with its connection."""
    try:
        yield
    except asyncio.CancelledError:
        await hang_up(command)
        raise


async def hang_up(command: PodCommand) -> None:
    """Ask the shell of a terminal to end."""
    with suppress(BackendError, TimeoutError):
        async with asyncio.timeout(HANG_UP_SECONDS):
            await command.send(HANG_UP)


def _check(pod_id: int, owner: User) -> RoleSnapshot | None:
    """The present roles of the owner. Raises NotFound or Forbidden if they may not use the terminal any more."""
    services.require_right(selectors.pod(pod_id, owner).job, owner)
    return tenancy.role_snapshots([owner.pk]).get(owner.pk)
