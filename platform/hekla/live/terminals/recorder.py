"""The recording of a terminal that several people share, written as it goes on.

What waits is at most one second of output. If the recording is full, or cannot be written, nobody but the owner stays:
a shared terminal without a record would be a way around it.
"""

import asyncio
import codecs
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.db import DatabaseError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import files, services
from hekla.apps.sharing.models import OpenTerminal, Recording
from hekla.domain.errors import HeklaError, NotFound, Refused
from hekla.lib import clock
from hekla.lib.asciicast import MARK, OUTPUT, RESIZE, CastEvent
from hekla.lib.encryption import DecryptionError
from hekla.lib.masking import SecretMask
from hekla.live.threads import in_thread

log = logging.getLogger(__name__)
WRITE_EVERY_SECONDS = 1.0
LEARN_EVERY_SECONDS = 10.0
"""How often the secrets are read again: a tool that starts in the pod has a new one."""
_TOGETHER_SECONDS = 0.03
"""Output within so many seconds is one event."""
_LONGEST_TEXT = 128 * 1024
"""Characters of an event. Each takes up to six bytes, and readers pass over lines that are longer than 1 MiB."""
_MOST_PEOPLE = 64


class Recorder:
    """Writes one recording. `mask`: of these secrets. `on_stop`: called if it stops before the terminal does."""

    def __init__(
        self, recording: Recording, pod: Pod, secrets: Iterable[str], mask: SecretMask, on_stop: Callable[[], None]
    ) -> None:
        self.recording, self._pod, self._on_stop = recording, pod, on_stop
        self.people: list[str] = list(recording.people)
        self.is_open, self.is_full = True, False
        self._secrets, self._mask = set(secrets), mask
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._began = self._learned_at = time.monotonic()
        self._parts, self._parts_at = list[str](), 0.0
        self._buffer, self._size = bytearray(), files.size(recording.uid)
        self._task = asyncio.create_task(self._write_all())

    def output(self, data: bytes) -> None:
        """Record what the terminal printed."""
        at = self._now()
        if self._parts and at - self._parts_at > _TOGETHER_SECONDS:
            self._end_output()
        if text := self._decoder.decode(self._mask.feed(data)):
            self._parts_at = self._parts_at if self._parts else at
            self._parts.append(text)

    def resize(self, columns: int, rows: int) -> None:
        """Record a new size."""
        self._add(RESIZE, f"{columns}x{rows}")

    def note_person(self, name: str) -> None:
        """Record that this person is here."""
        if name not in self.people and len(self.people) < _MOST_PEOPLE:
            self.people.append(name)
        self._add(MARK, name)

    def require_room(self) -> None:
        """Raises Refused if it has stopped."""
        if not self.is_open:
            raise Refused(
                _("The recording of this terminal is full, so it cannot be shared any more. Its owner opens a new one.")
            )

    async def close(self) -> None:
        """The terminal has ended: write the rest."""
        self._task.cancel()
        self._parts_at = self._parts_at if self._parts else self._now()
        self._parts.append(self._decoder.decode(self._mask.flush(), final=True))
        self._end_output()
        await self._write()
        self.is_open = False
        facts: dict[str, Any] = {"seconds": self._now(), "is_full": self.is_full, "now": clock.now()}
        try:
            await in_thread(partial(services.finish_recording, self.recording, self.people, **facts))
        except DatabaseError as error:
            log.warning("the end of a recording could not be recorded: %s", error)

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _end_output(self) -> None:
        text = "".join(self._parts)
        self._parts = []
        for begin in range(0, len(text), _LONGEST_TEXT):
            self._put(CastEvent(self._parts_at, OUTPUT, text[begin : begin + _LONGEST_TEXT]))

    def _add(self, code: str, data: str) -> None:
        self._end_output()
        self._put(CastEvent(self._now(), code, data))

    def _put(self, event: CastEvent) -> None:
        if not self.is_open:
            return
        line = event.encode()
        if self._size + len(line) > services.MAX_BYTES:
            self.is_full = True
            self._stop()
            return
        self._size += len(line)
        self._buffer += line

    def _stop(self) -> None:
        self.is_open = False
        self._on_stop()

    async def _write_all(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_SECONDS)
            if self._parts and self._now() - self._parts_at > _TOGETHER_SECONDS:
                self._end_output()
            await self._write()
            if time.monotonic() >= self._learned_at + LEARN_EVERY_SECONDS:
                await self._learn()

    async def _write(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        if not data:
            return
        try:
            await asyncio.to_thread(files.append, self.recording.uid, data)
        except OSError as error:
            log.warning("a recording cannot be written: %s", error)
            if self.is_open:
                self._stop()

    async def _learn(self) -> None:
        self._learned_at = time.monotonic()
        try:
            self._secrets |= set(await in_thread(partial(services.known_secrets, self._pod)))
        except (HeklaError, DecryptionError, DatabaseError) as error:
            log.warning("the secrets of a recording cannot be read: %s", error)
        await asyncio.to_thread(self._mask.learn, self._secrets)  # many take a while


async def begin_recorder(
    terminal: OpenTerminal, size: tuple[int, int], user: User, on_stop: Callable[[], None]
) -> Recorder:
    """Begin to record a terminal, because this person comes. `size`: columns and rows.

    Raises Refused if it cannot be recorded.
    """
    recording, secrets, mask = await in_thread(partial(_begin, terminal, size, user))
    return Recorder(recording, terminal.pod, secrets, mask, on_stop)


def _begin(terminal: OpenTerminal, size: tuple[int, int], user: User) -> tuple[Recording, list[str], SecretMask]:
    try:
        secrets = services.known_secrets(terminal.pod)
    except (NotFound, DecryptionError) as error:
        raise Refused(_("The secrets of this job cannot be masked, so its terminals cannot be shared.")) from error
    mask = SecretMask(secrets)
    return services.begin_recording(terminal, size, user=user, now=clock.now()), secrets, mask
