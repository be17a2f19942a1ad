"""What a recording takes in, and whom a terminal lets in."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from django.test import override_settings

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import files
from hekla.apps.sharing.models import Recording
from hekla.backends.base import BackendError
from hekla.domain.errors import Refused
from hekla.lib import asciicast
from hekla.lib.masking import SecretMask
from hekla.live.guard import Visitor
from hekla.live.terminals import recorder, registry
from hekla.live.terminals.terminal import Terminal


def test_readers_see_all_of_a_burst_of_output(tmp_path: Path) -> None:
    recording, printed = Recording(uid=uuid4()), "\x01" * 400_000 + "中" * 400_000

    async def scene() -> None:
        files.append(recording.uid, asciicast.header(80, 24, timestamp=0, title=""))
        taking = recorder.Recorder(recording, Pod(pk=1), [], SecretMask(["a-secret"]), lambda: None)
        taking.output(printed.encode())
        taking.resize(90, 30)
        await taking._write()
        taking._task.cancel()

    with override_settings(HEKLA_HOME=tmp_path):
        asyncio.run(scene())
        found = [event for event in asciicast.events(files.lines(recording.uid)) if event.code == "o"]
    assert "".join(event.data for event in found) == printed


def test_guests_leave_pages_to_the_owner() -> None:
    class Page:
        visitor, user = Visitor(1, None), User(pk=1)

    async def scene() -> None:
        shell = Terminal(Pod(pk=1), Page(), None, on_end=lambda: None)  # type: ignore[arg-type]
        shell.pages += [Page()] * (registry.MAX_PAGES - registry.OWNER_PAGES)  # type: ignore[list-item]
        registry.require_place(shell, User(pk=1))
        with pytest.raises(Refused):
            registry.require_place(shell, User(pk=2))

    asyncio.run(scene())


def test_nobody_else_comes_in_before_the_terminal_can_be_recorded() -> None:
    class Page:
        visitor, user = Visitor(1, None), User(pk=1)

    async def scene() -> None:
        shell = Terminal(Pod(pk=1), Page(), None, on_end=lambda: None)  # type: ignore[arg-type]
        await shell.admit(User(pk=1))
        coming = asyncio.create_task(shell.admit(User(pk=2)))
        await asyncio.sleep(0)
        assert not coming.done()
        shell.refuse(BackendError("The pod has ended"))
        with pytest.raises(BackendError):
            await coming

    asyncio.run(scene())
