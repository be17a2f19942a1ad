"""The websocket of a page with a terminal.

From the page: `input` (data), `resize` (columns, rows), `take` (the keyboard), `end`. To the page: `hello` (the id of
the terminal, its size, the offset of the output that follows and of its end now, other terminals in the pod), `output`
(offset, data in base 64), `size`, `people`, `full` (input was dropped), `refused` (why there is no terminal), `ended`
(reason, exit code).

Who may act on the job needs no invitation. Another person needs one to this very terminal, accepted and in force: the
guard ends the socket with it. Observers' input is dropped here, whatever their page sends.

A page that connects again sends the id of its terminal and the offset that it has reached. It gets the rest; of another
terminal, which has another id, it gets everything from the start.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Pod
from hekla.apps.sentences import translated
from hekla.apps.sharing import selectors as sharing
from hekla.apps.sharing.models import Guest
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.backends.base import BackendError, Exec
from hekla.domain.errors import Forbidden, HeklaError, NotFound, Refused
from hekla.domain.events import TerminalEnd
from hekla.domain.sharing import GuestRole
from hekla.lib import clock
from hekla.live import subscriptions
from hekla.live.consumers import TRY_AGAIN, GuardedConsumer
from hekla.live.guard import Visitor, guard
from hekla.live.logs import backend_of
from hekla.live.terminals.registry import Elsewhere, require_place, terminals
from hekla.live.terminals.terminal import Terminal, TerminalSize
from hekla.live.threads import in_thread

REFUSED, ENDED = 4403, 4410
_CHUNK_BYTES = 32 * 1024
MAX_FRAME_CHARACTERS = 64 * 1024


class TerminalConsumer(GuardedConsumer):
    """Shows one terminal: that of its person in a pod, or with the parameter `of` that of another person."""

    user: User
    may_type = True
    guest: Guest | None = None
    terminal: Terminal | None = None
    _sender: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Check the person, then find or open the terminal."""
        self.pod_id = int(self.scope["url_route"]["kwargs"]["pod_id"])
        self._news, self._messages = asyncio.Event(), dict[str, Mapping[str, Any]]()
        named = self.params.get("language", "")
        self._language = named if named in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
        try:
            self.roles, self.user, self.guest = await self._look_up()
            self._rely_on(self.guest)
            self.terminal = await self._find()
            with translation.override(self._language):
                require_place(self.terminal, self.user)
                await self.terminal.admit(self.user)
        except Forbidden:
            await self._close(REFUSED)
        except NotFound:
            raise
        except Elsewhere:
            await self._close(TRY_AGAIN)
        except (HeklaError, BackendError) as error:
            with translation.override(self._language):
                text = error.message if isinstance(error, HeklaError) else translated(str(error))
            await self.send_json({"type": "refused", "text": text})
            await self._close(REFUSED)
        else:
            await self._show(self.terminal)

    async def refresh(self) -> None:
        """Look up the present roles. Raises NotFound if the person may not run commands in the pod any more."""
        try:
            self.roles, self.user, guest = await self._look_up()
        except Forbidden as error:
            raise NotFound(error.message) from error
        if (guest and guest.pk) != (self.guest and self.guest.pk):
            raise NotFound("The right to it is another one now.")

    async def disconnect(self, code: int) -> None:
        """Leave the terminal, which goes on."""
        await super().disconnect(code)
        self._leave()

    async def end(self) -> None:
        """Stop sending, and close the socket."""
        self._leave()
        await super().end()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Handle a message of the page. What is no such message is ignored."""
        if self.terminal is None or self.is_closed or not text_data or len(text_data) > MAX_FRAME_CHARACTERS:
            return
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            message = json.loads(text_data)
            match message["type"]:
                case "input":
                    self.terminal.type(self, str(message["data"]).encode(errors="replace"))
                case "resize":
                    await self.terminal.resize(self, TerminalSize.clamp(int(message["columns"]), int(message["rows"])))
                case "take":
                    self.terminal.take_keyboard(self)
                case "end" if self._may_end(self.terminal):
                    is_own = self.terminal.owner.pk == self.user.pk
                    self.terminal.stop(TerminalEnd.CLOSED if is_own else TerminalEnd.CO_OWNER)

    def wake(self) -> None:
        """Send the new output."""
        self._news.set()

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send this message, or a newer one of its type."""
        self._messages[message["type"]] = message
        self._news.set()

    async def _look_up(self) -> tuple[RoleSnapshot, User, Guest | None]:
        return await in_thread(partial(_authorize, self.pod_id, self.visitor, self.params.get("of", "")))

    def _rely_on(self, guest: Guest | None) -> None:
        """Let the guard end this socket with the invitation that opened it."""
        if guest is not None:
            guard().leave(self)
            self.visitor = replace(self.visitor, guest=guest.pk)
            guard().watch(self)
            self.may_type = GuestRole(guest.role).may_type

    def _may_end(self, terminal: Terminal) -> bool:
        return terminal.owner.pk == self.user.pk or (self.guest is not None and self.guest.role == GuestRole.OWNER)

    async def _find(self) -> Terminal:
        """The terminal to show. Raises HeklaError, BackendError."""
        if self.visitor.impersonation is not None:
            with translation.override(self._language):
                raise Refused(_("Terminals are not open to those who act for another person."))
        if other := self.params.get("of"):
            with translation.override(self._language):
                return await terminals().find(self.pod_id, other)
        pod, commands = await in_thread(partial(_prepare, self.pod_id, self.user, self._language))
        with translation.override(self._language):
            return await terminals().own(pod, self, commands, self.roles)

    async def _show(self, terminal: Terminal) -> None:
        offset = self.params.get("offset", "")
        is_same = self.params.get("terminal") == terminal.id.hex and offset.isdigit() and len(offset) < 19  # noqa: PLR2004
        self._cursor = min(int(offset), terminal.output.end) if is_same else terminal.output.begin
        await self.send_json({
            "type": "hello",
            "terminal": terminal.id.hex,
            "offset": self._cursor,
            "end": terminal.output.end,
            "columns": terminal.size.columns,
            "rows": terminal.size.rows,
            "owner": str(terminal.owner),
            "is_own": terminal.owner.pk == self.user.pk,
            "may_type": self.may_type,
            "may_end": self._may_end(terminal),
            "others": [] if self.guest else [
                {"terminal": one.id.hex, "owner": str(one.owner), "is_own": one.owner.pk == self.user.pk}
                for one in terminals().of_pod(self.pod_id)
                if one is not terminal
            ],
        })  # fmt: skip
        if self.is_closed:
            return
        terminal.join(self)
        self._news.set()
        self._sender = asyncio.create_task(self._send(terminal))

    async def _send(self, terminal: Terminal) -> None:
        """Send the output from the cursor on, messages between, the end last. A slow connection skips output."""
        with suppress(OSError):
            while not self.is_closed:
                await self._news.wait()
                self._news.clear()
                has_more = True
                while has_more:
                    begin, data = terminal.output.read(self._cursor, _CHUNK_BYTES)
                    has_more = bool(data)
                    if has_more:
                        self._cursor = begin + len(data)
                        text = base64.b64encode(data).decode()
                        await self.send_json({"type": "output", "offset": begin, "next": self._cursor, "data": text})
                    for kind in [one for one in self._messages if one != "ended" or not has_more]:
                        await self.send_json(self._messages.pop(kind))
                        if kind == "ended":
                            await self._close(ENDED)
                            return

    def _leave(self) -> None:
        if self.terminal is not None:
            self.terminal.leave(self)
        if self._sender is not None and self._sender is not asyncio.current_task():
            self._sender.cancel()


def _authorize(pod_id: int, visitor: Visitor, of: str) -> tuple[RoleSnapshot, User, Guest | None]:
    """The roles and the user, if they may run commands in the pod, or are invited to the terminal `of` in it.

    Returns that invitation too, if they need it. Raises NotFound, Forbidden.
    """
    roles, user = subscriptions.authorize(visitor)
    job = selectors.pod(pod_id, user).job
    if selectors.may_act(user, job):
        return roles, user, None
    guest = sharing.guest_of_terminal(of, pod_id, user, now=clock.now()) if of else None
    if guest is None:
        services.require_right(job, user)
    return roles, user, guest


def _prepare(pod_id: int, user: User, language: str) -> tuple[Pod, Exec]:
    """The pod, and what runs commands in it. Raises HeklaError in this language."""
    with translation.override(language):
        pod = services.require_terminal(pod_id, user)
        commands = backend_of(pod).exec
        if commands is None:
            raise Refused(_("The cluster %(name)s runs no commands in pods.") % {"name": pod.job.cluster})
        return pod, commands
