"""Counts what people do in sessions, terminals and SSH connections of this process, for the idle rule.

The amounts of each minute are added to its row every few seconds, in a thread and on a connection of their own. If the
database is away they wait, and the record has a gap at worst, which never ends a session.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DatabaseError, connection

from hekla.apps.idleness import recording
from hekla.domain.idleness import Signal
from hekla.lib import clock
from hekla.live.threads import per_loop

log = logging.getLogger(__name__)
STORE_EVERY_SECONDS = 10.0
_MOST_WAITING = 20_000
"""Rows that wait for the database; more are dropped."""


class ActivityMeter:
    """The amounts of one event loop that are not stored yet."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, datetime], Counter[Signal]] = defaultdict(Counter)
        self._people: dict[tuple[int, int, datetime], Counter[Signal]] = defaultdict(Counter)
        self._task: asyncio.Task[None] | None = None

    def of_session(self, session: int, signal: Signal, amount: int = 1) -> None:
        """Count something of a session (primary key)."""
        self._sessions[session, recording.minute_of(clock.now())][signal] += amount
        self._begin()

    def of_person(self, pod: int, person: int, signal: Signal, amount: int) -> None:
        """Count something of a person in a pod (primary keys), for each session that they have there."""
        self._people[pod, person, recording.minute_of(clock.now())][signal] += amount
        self._begin()

    async def store(self) -> None:
        """Store what has been counted."""
        sessions, self._sessions = self._sessions, defaultdict(Counter)
        people, self._people = self._people, defaultdict(Counter)
        try:
            await asyncio.to_thread(partial(_store, sessions, people))
        except DatabaseError as error:
            log.warning("the activity of sessions cannot be stored now: %s", error)
            if len(sessions) + len(people) < _MOST_WAITING:
                self._take_back(sessions, people)

    def _take_back(
        self,
        sessions: dict[tuple[int, datetime], Counter[Signal]],
        people: dict[tuple[int, int, datetime], Counter[Signal]],
    ) -> None:
        for of_session, amounts in sessions.items():
            self._sessions[of_session].update(amounts)
        for of_person, amounts in people.items():
            self._people[of_person].update(amounts)

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._sessions or self._people:
                await asyncio.sleep(STORE_EVERY_SECONDS)
                await self.store()
        finally:
            self._task = None


def _store(sessions: Any, people: Any) -> None:  # noqa: ANN401  (see `recording.count`)
    try:
        recording.count(sessions, people)
    finally:
        connection.close()  # of this thread, which the next call need not get


meter = per_loop(ActivityMeter)
