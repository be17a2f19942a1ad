"""The open SSH connections of this process: not too many, and none to a pod that has ended."""

import asyncio
import logging
import time
from collections.abc import Collection
from functools import partial
from typing import Protocol

from django.db import DatabaseError
from django.utils.translation import gettext as _

from hekla.apps.jobs import selectors
from hekla.domain.errors import Refused
from hekla.domain.events import TerminalEnd
from hekla.live.threads import in_thread, per_loop

log = logging.getLogger(__name__)
MAX_OF_PERSON, MAX_OF_POD, MAX_OPEN = 16, 32, 200
LOOK_EVERY_SECONDS = 2.0
IDLE_SECONDS = 8 * 3600.0
"""How long a connection goes on without output or input of its channels."""


class OpenConnection(Protocol):
    """An open SSH connection. `used_at`: when it last carried bytes of a channel, by the monotonic clock."""

    pod_id: int

    @property
    def person(self) -> int:
        """The id of its person."""

    @property
    def used_at(self) -> float:
        """See above."""

    def stop(self, reason: TerminalEnd) -> None:
        """End it for this reason."""

    async def ended(self) -> None:
        """Wait until it has ended, and that is recorded."""


class Connections:
    """Those of one event loop."""

    def __init__(self) -> None:
        self._open: set[OpenConnection] = set()
        self._watch: asyncio.Task[None] | None = None

    def enter(self, one: OpenConnection) -> None:
        """Count this connection. Raises Refused if there are too many."""
        if sum(other.person == one.person for other in self._open) >= MAX_OF_PERSON:
            raise Refused(
                _("You have %(n)s SSH connections, which is the most. Close one first.") % {"n": MAX_OF_PERSON}
            )
        if sum(other.pod_id == one.pod_id for other in self._open) >= MAX_OF_POD:
            raise Refused(
                _("This pod has %(n)s SSH connections, which is the most. Try again later.") % {"n": MAX_OF_POD}
            )
        if len(self._open) >= MAX_OPEN:
            raise Refused(_("The console has too many SSH connections now. Try again later."))
        self._open.add(one)
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_pods())

    def leave(self, one: OpenConnection) -> None:
        """It has ended."""
        self._open.discard(one)
        if not self._open and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def stop_all(self) -> None:
        """End all connections because the console stops, and wait until that is recorded."""
        stopped = [*self._open]
        for one in stopped:
            one.stop(TerminalEnd.STOPPED)
        for one in stopped:
            await one.ended()

    async def _watch_pods(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            watched = [*self._open]
            running = await _running({one.pod_id for one in watched})
            for one in watched:
                if running is not None and one.pod_id not in running:
                    one.stop(TerminalEnd.POD)
                elif time.monotonic() > one.used_at + IDLE_SECONDS:
                    one.stop(TerminalEnd.IDLE)


async def _running(pod_ids: Collection[int]) -> set[int] | None:
    try:
        return await in_thread(partial(selectors.running_among, pod_ids))
    except DatabaseError as error:
        log.warning("cannot look up whether pods run: %s", error)
        return None


connections = per_loop(Connections)
