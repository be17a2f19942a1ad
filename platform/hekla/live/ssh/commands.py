"""A command in a pod, and the SSH channel of its input and outputs."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncssh

from hekla.backends.base import BackendError, Exec, PodKey
from hekla.backends.streams import PodCommand
from hekla.live.ssh import sftp
from hekla.live.terminals.terminal import SHELL, TerminalSize, hang_up

SFTP = "sftp"
FAILED = 126
"""The exit code of a command that could not run."""
SFTP_END_SECONDS = 2.0
_CHUNK_BYTES = 64 * 1024
_RUN = ("sh", "-c", 'exec "$(command -v bash || echo sh)" -c "$0"')
_PASSED_ON = re.compile(r"(TERM|COLORTERM|LANG|LC_[A-Z]{1,32})")
_MAX_VALUE = 100
_TYPED = {"INT": b"\x03", "QUIT": b"\x1c", "TSTP": b"\x1a", "HUP": b"\x04"}
"""What a terminal makes of these signals. A command without one gets no signal: no backend can send it."""
Process = asyncssh.SSHServerProcess[bytes]


def refuse(process: Process, text: str) -> None:
    """End the channel with this message as its only error output."""
    with suppress(OSError, asyncssh.Error):  # the client has closed the channel
        process.stderr.write(f"hekla: {text}\r\n".encode())
        process.exit(FAILED)


async def run(process: Process, commands: Exec, key: PodKey, note_use: Callable[[], Awaitable[None]]) -> None:
    """Run what the channel requests, until it ends or the client closes the channel.

    `note_use`: called before bytes are sent to the client; waits until it reads, and lets others send in between.
    """
    if process.subsystem not in (None, SFTP):
        refuse(process, f"There is no subsystem {process.subsystem!r} here.")
        return
    is_sftp, in_terminal = process.subsystem == SFTP, process.term_type is not None
    words = sftp.COMMAND if is_sftp else _words(process)
    if any("\0" in word for word in words):
        refuse(process, "A command has no NUL characters.")
        return
    try:
        async with commands.run(key, words, in_terminal=in_terminal) as running:
            if is_sftp:
                await sftp.begin(running)
            if in_terminal:
                await _resize(running, *process.term_size[:2])
            await _attend(process, running, in_terminal, note_use)
    except BackendError as error:
        refuse(process, str(error))


async def _attend(
    process: Process, running: PodCommand, in_terminal: bool, note_use: Callable[[], Awaitable[None]]
) -> None:
    """Carry input and outputs until the command has ended or the channel is closed."""
    output = asyncio.create_task(_send_output(process, running, note_use))
    typing = asyncio.create_task(_type_all(process, running, in_terminal))
    closed = asyncio.create_task(process.wait_closed())
    try:
        is_sftp = process.subsystem == SFTP
        await asyncio.wait({output, closed, *([typing] if is_sftp else [])}, return_when=asyncio.FIRST_COMPLETED)
        if is_sftp and not output.done():  # not every cluster passes on the end of an input
            await asyncio.wait({output, closed}, return_when=asyncio.FIRST_COMPLETED, timeout=SFTP_END_SECONDS)
        if output.done():
            output.result()
            process.exit(FAILED if running.exit_code is None else running.exit_code)
        elif not closed.done():
            process.exit(0)
    finally:
        if in_terminal and not output.done():
            await hang_up(running)
        for task in (output, typing, closed):
            task.cancel()
            await asyncio.wait({task})
            task.cancelled() or task.exception()


async def _send_output(process: Process, running: PodCommand, note_use: Callable[[], Awaitable[None]]) -> None:
    with suppress(OSError, asyncssh.Error):  # the client has gone
        while (piece := await running.receive()) is not None:
            await note_use()
            writer = process.stderr if piece.is_error else process.stdout
            writer.write(piece.data)
            await writer.drain()


async def _type_all(process: Process, running: PodCommand, in_terminal: bool) -> None:
    """Type what the client sends until the end of its input. After that, its terminal may still change its size."""
    with suppress(OSError, asyncssh.Error, BackendError):  # the client has gone, or the command reads no more
        while True:
            try:
                data = await process.stdin.read(_CHUNK_BYTES)
            except asyncssh.TerminalSizeChanged as change:
                await _resize(running, change.width, change.height)
            except asyncssh.BreakReceived:
                await _signal(running, "INT", in_terminal)
            except asyncssh.SignalReceived as sent:
                await _signal(running, sent.signal, in_terminal)
            else:
                if not data:
                    await running.end_input()
                    return
                await running.send(data)


async def _resize(running: PodCommand, columns: int, rows: int) -> None:
    if columns and rows:
        size = TerminalSize.clamp(columns, rows)
        await running.resize(size.columns, size.rows)


async def _signal(running: PodCommand, name: str, in_terminal: bool) -> None:
    if in_terminal and name in _TYPED:
        await running.send(_TYPED[name])


def _words(process: Process) -> tuple[str, ...]:
    """The command, run by a shell as SSH servers do, or the shell itself; with what the client says of its terminal."""
    named = {"TERM": process.term_type or "", **{str(name): str(value) for name, value in process.env.items()}}
    passed_on = [
        f"{name}={value[:_MAX_VALUE]}" for name, value in named.items() if value and _PASSED_ON.fullmatch(name)
    ]
    words = SHELL if process.command is None else (*_RUN, process.command)
    return ("env", *passed_on, *words) if passed_on else words
