"""Prints warnings of idle sessions in the terminals that their owners have open in the same pod.

Each process looks for its own terminals, all of them with one query. A line between the output of a program may spoil
its screen, but typing anything in the terminal keeps the sessions, so this is where the warning is needed.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import DatabaseError
from django.utils import translation
from django.utils.translation import gettext as _

from hekla.apps.idleness import selectors
from hekla.lib import clock
from hekla.live.terminals.terminal import Terminal
from hekla.live.threads import in_thread

log = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 30.0
_LATE = timedelta(minutes=5)
"""How long after its time a warning may be stored: all sessions are measured before, and clocks differ."""
OpenTerminals = Callable[[], Mapping[tuple[int, int], Terminal]]


class IdleNotices:
    """Those of one event loop. `opened`: the open terminals, by pod and person."""

    def __init__(self, opened: OpenTerminals) -> None:
        self._opened = opened
        self._printed: set[tuple[int, datetime | None]] = set()
        """The sessions of the last warnings, and when they were warned."""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look from time to time, while a terminal is open."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def look(self) -> None:
        """Print the new warnings."""
        opened, printed = dict(self._opened()), self._printed
        found = await in_thread(partial(_texts, frozenset(opened)))
        self._printed = {warning for warning, _place, _text in found}
        for warning, place, text in found:
            if warning not in printed:
                opened[place].print_line(text)

    async def _run(self) -> None:
        try:
            while self._opened():
                await asyncio.sleep(LOOK_EVERY_SECONDS)
                try:
                    await self.look()
                except DatabaseError as error:
                    log.warning("cannot look up warnings of idle sessions: %s", error)
        finally:
            self._task = None


def _texts(
    places: frozenset[tuple[int, int]],
) -> list[tuple[tuple[int, datetime | None], tuple[int, int], str]]:
    """The last warnings: which, where they are printed, and as text."""
    found = []
    with translation.override(settings.LANGUAGE_CODE):
        for one in selectors.warnings(places, after=clock.now() - _LATE):
            assert one.ends_at is not None  # noqa: S101  (it has been warned)
            minutes = max(0, round((one.ends_at - clock.now()).total_seconds() / 60))
            facts = {"session": one.session.label, "minutes": minutes}
            text = _("The session “%(session)s” is idle and ends in %(minutes)d min. Type here to keep it.") % facts
            found.append(((one.session_id, one.warned_at), (one.session.pod_id, one.session.owner_id), text))
    return found
