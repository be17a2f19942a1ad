"""The websocket of an SSH client, which `hekla ssh-proxy` opens with the person's token.

The first message is a text: `ready` (the public host key) or `refused` (why not). After `ready`, binary messages carry
the bytes of SSH in both directions. A last text, `ended`, tells why the console ends the connection.
"""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import DatabaseError
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps import limits
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.scopes import MissingScope, Scope
from hekla.apps.accounts.services import actor_of
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Pod
from hekla.apps.sentences import translated
from hekla.apps.signin import rule
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.backends.base import BackendError
from hekla.domain.errors import Forbidden, HeklaError, NotFound, Refused
from hekla.domain.events import TerminalEnd
from hekla.domain.idleness import Signal
from hekla.lib import clock
from hekla.live import subscriptions
from hekla.live.activity import meter
from hekla.live.consumers import NOT_SIGNED_IN, TRY_AGAIN, UNKNOWN, GuardedConsumer
from hekla.live.guard import Visitor
from hekla.live.logs import backend_of, key_of
from hekla.live.ssh import host_key
from hekla.live.ssh.connections import connections
from hekla.live.ssh.server import PodAccess, PodServer
from hekla.live.ssh.transport import SshTransport
from hekla.live.threads import in_thread

log = logging.getLogger(__name__)
REFUSED, UNREADY, ENDED = 4403, 4409, 4410
OPENED_A_MINUTE = 120
MAX_FRAME_BYTES = 256 * 1024
_CODES = {NotFound: UNKNOWN, Forbidden: REFUSED, DatabaseError: TRY_AGAIN}
_SENTENCES = {
    TerminalEnd.POD: gettext_lazy("The pod has ended."),
    TerminalEnd.IDLE: gettext_lazy("The connection was idle for too long."),
    TerminalEnd.RIGHTS: gettext_lazy("You may no longer connect to this pod, or your token is no longer valid."),
    TerminalEnd.STOPPED: gettext_lazy("The console stops. Connect again."),
}


@dataclass(frozen=True, slots=True)
class _Opening:
    """What was looked up for a connection."""

    roles: RoleSnapshot
    user: User
    pod: Pod
    access: PodAccess


class SshConsumer(GuardedConsumer):
    """One SSH connection to the pod that the address names."""

    pod_id = 0
    _transport: SshTransport | None = None
    _server: PodServer | None = None
    _serving: asyncio.Task[None] | None = None
    _reason: TerminalEnd | None = None

    async def begin(self) -> None:
        """Check the person and the pod, then serve the connection."""
        token = self.scope.get("token")
        if not isinstance(token, ApiToken):
            await self._close(NOT_SIGNED_IN)
            return
        host = str(self.scope["url_route"]["kwargs"]["host"])
        try:
            found = await in_thread(partial(_prepare, host, token, self.visitor))
            self.roles, self.user, self.pod_id = found.roles, found.user, found.pod.pk
            if self.is_closed:  # the guard has ended it meanwhile
                return
            with translation.override(settings.LANGUAGE_CODE):
                connections().enter(self)
        except (HeklaError, BackendError) as error:
            await self._refuse(error)
            return
        self._serving = asyncio.create_task(self._serve(found))

    async def refresh(self) -> None:
        """Look up the present roles. Raises NotFound if the person may not run commands in the pod any more."""
        try:
            self.roles = await in_thread(partial(_authorize, self.pod_id, self.visitor))
        except Forbidden as error:
            raise NotFound(error.message) from error

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Take bytes of SSH. While it does not return, the client waits."""
        if self._transport is None or not bytes_data:
            return
        if len(bytes_data) > MAX_FRAME_BYTES:
            self.stop(TerminalEnd.CLOSED)
            return
        await self._transport.feed(bytes_data)

    async def disconnect(self, code: int) -> None:
        """The client has gone. The guard keeps its threads until that is recorded."""
        self.is_closed = True
        self.stop(TerminalEnd.CLOSED)
        if self._serving is None:
            await super().disconnect(code)

    async def end(self) -> None:
        """The person has lost the permission. Nobody waits for the client here."""
        self.stop(TerminalEnd.RIGHTS)
        if self._serving is None:
            await super().end()

    # What `connections` calls

    @property
    def person(self) -> int:
        """The id of its person."""
        return self.visitor.person

    @property
    def used_at(self) -> float:
        """When it last carried bytes of a channel."""
        return self._server.used_at if self._server else float("inf")

    def stop(self, reason: TerminalEnd) -> None:
        """End the connection for this reason."""
        if self._serving is not None and self._reason is None:
            self._reason = reason
            asyncio.get_running_loop().call_soon(self._serving.cancel)  # not before it runs: it has to clean up

    async def ended(self) -> None:
        """Wait until it has ended, and that is recorded."""
        if self._serving is not None:
            await asyncio.wait([self._serving])

    async def _serve(self, found: _Opening) -> None:
        connection = uuid4()
        self._server = PodServer(found.access)
        self._server.note_input = partial(meter().of_person, found.pod.pk, found.user.pk, Signal.SSH)
        record = partial(services.record_ssh, found.pod.pk, connection, user=found.user, now=clock.now())
        opening = asyncio.create_task(in_thread(record))
        try:
            await asyncio.shield(opening)  # its thread goes on anyway, and the end is recorded after it
            await self._carry(self._server, found.access.name)
        except (HeklaError, DatabaseError) as error:
            await self._refuse(error)
        except asyncio.CancelledError:
            pass
        finally:
            self._reason = self._reason or TerminalEnd.CLOSED
            await asyncio.wait([opening])
            if not opening.cancelled() and opening.exception() is None:
                await self._record_end(found, connection, self._server, self._reason)
            connections().leave(self)
            await self._leave(self._reason)

    async def _carry(self, server: PodServer, pod: str) -> None:
        """Carry SSH until either side ends it."""
        self._transport = SshTransport(server, self._send)
        try:
            with suppress(OSError):
                await self.send_json({"type": "ready", "host_key": host_key.public_key(), "pod": pod})
                await self._transport.run()
        finally:
            self._transport.close()

    async def _record_end(self, found: _Opening, connection: UUID, server: PodServer, reason: TerminalEnd) -> None:
        counts = {
            "commands": server.commands,
            "forwards": server.forwards,
            "seconds": round(time.monotonic() - server.opened_at, 1),
        }
        facts: dict[str, Any] = {"counts": counts, "owner": actor_of(found.user), "now": clock.now()}
        try:
            await in_thread(partial(services.record_ssh_end, found.pod, connection, reason, **facts))
        except DatabaseError as error:
            log.warning("the end of an SSH connection could not be recorded: %s", error)

    async def _leave(self, reason: TerminalEnd) -> None:
        """Close the websocket, with a sentence for the person if it was not they who ended it."""
        has_gone = self.is_closed
        self._finish()
        if has_gone:
            return
        with suppress(OSError), translation.override(settings.LANGUAGE_CODE):
            if reason in _SENTENCES:
                await self.send_json({"type": "ended", "text": str(_SENTENCES[reason])})
            await self.close(UNKNOWN if reason is TerminalEnd.RIGHTS else ENDED)

    async def _refuse(self, error: Exception) -> None:
        """Tell why there is no connection, and close."""
        with translation.override(settings.LANGUAGE_CODE):
            text = error.message if isinstance(error, HeklaError) else translated(str(error))
        with suppress(OSError):
            await self.send_json({"type": "refused", "text": text})
        await self._close(next((code for kind, code in _CODES.items() if isinstance(error, kind)), UNREADY))

    async def _send(self, data: bytes) -> None:
        if self.is_closed:
            raise ConnectionResetError
        await self.send(bytes_data=data)


def _prepare(host: str, token: ApiToken, visitor: Visitor) -> _Opening:
    """Find the pod, and check everything. Raises HeklaError, BackendError."""
    with translation.override(settings.LANGUAGE_CODE):
        rule.require(token.user)
        if not token.allows(Scope.JOBS):
            raise MissingScope(Scope.JOBS)
        if not limits.allows(f"ssh:{visitor.person}", most=OPENED_A_MINUTE, seconds=60):
            raise Refused(_("Too many SSH connections in a minute. Wait a little, then try again."))
        roles, user = subscriptions.authorize(visitor)
        found = selectors.pod_by_host(host, user)
        pod = services.require_terminal(found.pk, user)
        backend = backend_of(pod)
        if backend.exec is None:
            raise Refused(_("The cluster %(name)s runs no commands in pods.") % {"name": pod.job.cluster})
        access = PodAccess(key_of(pod), str(pod), backend.exec, backend.port_forwarding)
        return _Opening(roles, user, pod, access)


def _authorize(pod_id: int, visitor: Visitor) -> RoleSnapshot:
    """The roles of a person who may still run commands in the pod. Raises NotFound, Forbidden."""
    roles, user = subscriptions.authorize(visitor)
    services.require_right(selectors.pod(pod_id, user).job, user)
    return roles
