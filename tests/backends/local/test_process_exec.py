"""Commands and terminals in pods without containers: in their namespaces, groups and filters, and ending with them."""

import asyncio
import contextlib
import os
import select
import signal
import time
from pathlib import Path

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.local.test_isolation import secrets_of
from tests.backends.local.test_processes import eventually, folder_of

from hekla.backends.base import BackendError, PodKey
from hekla.backends.local import process_exec
from hekla.backends.local.pod_folder import PodFolder
from hekla.backends.local.process_exec import NOT_APART, NOT_RUNNING, OLD
from hekla.backends.local.sandbox import commands, init
from hekla.backends.local.sandbox.commands import MAX_CONNECTIONS
from hekla.backends.streams import PodCommand
from hekla.domain.phases import PodPhase

PATIENCE_SECONDS = 20.0
FACTS = (
    "cat /proc/self/cgroup; readlink /proc/self/ns/*; id; "
    "grep -E 'Cap|NoNew|Seccomp|Cpus_allowed_list' /proc/self/status"
)


def running(cluster: ClusterFixture, script: str = "exec sleep 1000", **fields: object) -> PodKey:
    key = cluster.started(cluster.order(script=script, **fields))
    cluster.until(key, PodPhase.RUNNING)
    return key


async def outputs(command: PodCommand) -> tuple[str, str]:
    """The output and the errors of a command until it ends."""
    texts = {False: b"", True: b""}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (piece := await command.receive()) is not None:
            texts[piece.is_error] += piece.data
    return texts[False].decode(), texts[True].decode()


async def until(command: PodCommand, text: str) -> str:
    """The output up to this text."""
    received = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while text not in received:
            piece = await command.receive()
            assert piece is not None, received
            received += piece.data.decode()
    return received


async def run(
    cluster: ClusterFixture, key: PodKey, *command: str, typed: bytes | None = None
) -> tuple[str, str, int | None]:
    async with cluster.backend.exec.run(key, command) as found:
        if typed is not None:
            reading = asyncio.create_task(outputs(found))
            await found.send(typed)
            await found.end_input()
            return *await reading, found.exit_code
        return *await outputs(found), found.exit_code


async def test_command_has_the_environment_folder_and_input_of_the_pod(local: ClusterFixture) -> None:
    key = running(local, "echo mine > file; exec sleep 1000", env={"OWN": "value"})
    script = "cat; cat file; pwd; echo $OWN $HEKLA_POD; echo bad >&2; exit 7"
    text = "typed\n" * 30_000
    found, errors, code = await run(local, key, "sh", "-c", script, typed=text.encode())
    assert (errors, code) == ("bad\n", 7)
    assert found == f"{text}mine\n/home/pod\nvalue job:worker-0-0\n"


async def test_command_is_where_the_pod_is(local: ClusterFixture) -> None:
    """Groups of memory and CPU, namespaces, filters, capabilities, CPUs, user: all the same as of the pod's process."""
    key = running(local, f"{FACTS}; exec sleep 1000")
    found, _errors, _code = await run(local, key, "sh", "-c", FACTS)
    assert eventually(lambda: found == local.log(key)), local.log(key)  # the pod prints its own a little later
    assert "Seccomp:\t2" in found
    for path in secrets_of(local.home).values():
        _found, errors, _code = await run(local, key, "cat", str(path))
        assert "No such file" in errors
    names, _errors, _code = await run(local, key, "sh", "-c", "cat /proc/1/environ; kill -9 1; ls /proc/1/fd")
    assert names == ""


def test_end_before_the_first_process_listens_is_noticed(tmp_path: Path) -> None:
    reader, result = os.pipe()
    listener = commands.listen(str(tmp_path / "commands"))
    assert listener is not None

    def serve() -> commands.CommandServer:
        time.sleep(0.2)  # the pod's process ends meanwhile
        return commands.CommandServer(listener, lambda *_: None)

    pid = os.fork()
    if pid == 0:
        init.run(lambda: os._exit(3), result, listener.fileno(), serve)
    os.close(result)
    try:
        assert select.select([reader], [], [], 5)[0]
        assert init.exit_code(reader, -1) == 3
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        listener.close()


async def test_handles_of_a_terminal_stay_in_this_process(local: ClusterFixture) -> None:
    key, before = running(local), set(os.listdir("/proc/self/fd"))
    async with local.backend.exec.run(key, ["cat"], in_terminal=True) as terminal:
        new = [int(one) for one in set(os.listdir("/proc/self/fd")) - before if os.path.exists(f"/proc/self/fd/{one}")]
        assert len([one for one in new if os.isatty(one)]) == 1
        assert not any(map(os.get_inheritable, new))
        await terminal.send(b"\x04")


async def test_pod_that_does_not_answer_holds_no_thread(local: ClusterFixture, monkeypatch) -> None:
    monkeypatch.setattr(process_exec, "_ANSWER_SECONDS", 0.5)
    key = running(local)
    place = folder_of(local, key).commands
    os.unlink(place)
    deaf = commands.listen(place)
    assert deaf is not None
    before = len(os.listdir("/proc/self/fd"))
    requests = [asyncio.create_task(run(local, key, "true")) for _ in range(8)]
    await asyncio.sleep(0.2)
    async with asyncio.timeout(0.2):
        assert await asyncio.gather(*(asyncio.to_thread(int) for _ in range(8))) == [0] * 8
    requests[0].cancel()
    for result in await asyncio.gather(*requests[1:], return_exceptions=True):
        assert isinstance(result, BackendError)
        assert str(result) == OLD
    assert len(os.listdir("/proc/self/fd")) <= before
    deaf.close()


async def test_terminal_has_a_size_and_signals(local: ClusterFixture) -> None:
    key = running(local)
    async with local.backend.exec.run(key, ["sh"], in_terminal=True) as terminal:
        await terminal.resize(100, 40)
        await terminal.send(b"PS1=; stty size; tty; echo $TERM\r")
        assert "40 100\r\n/dev/pts/0\r\nxterm-256color" in await until(terminal, "xterm-256color\r\n")
        await terminal.send(b"sleep 500; echo $((100 + $?))\r")
        await until(terminal, "sleep 500")
        await asyncio.sleep(0.2)
        await terminal.send(b"\x03")
        await until(terminal, "^C")
        await terminal.send(b"echo $((100 + 41))\r")
        await until(terminal, "141\r\n")
        await terminal.send(b"exit 3\r")
        await outputs(terminal)
        assert terminal.exit_code == 3


async def test_end_of_the_command_is_known_while_others_hold_its_terminal(local: ClusterFixture) -> None:
    key = running(local)
    async with local.backend.exec.run(key, ["sh", "-c", "sleep 400 & echo left"], in_terminal=True) as terminal:
        assert await outputs(terminal) == ("left\r\n", "")
        assert terminal.exit_code == 0


async def test_command_can_signal_the_processes_of_the_pod(local: ClusterFixture) -> None:
    key = running(local)
    find = "grep -l ^sleep /proc/[0-9]*/comm | cut -d/ -f3"
    with contextlib.suppress(BackendError):  # the pod may end first
        await run(local, key, "sh", "-c", f"until kill -TERM $({find}) 2>/dev/null; do :; done")
    assert local.ended(key).reason == "SIGTERM"


async def test_commands_end_with_their_pod(local: ClusterFixture, tmp_path: Path) -> None:
    key = running(local)
    async with local.backend.exec.run(key, ["sh"], in_terminal=True) as terminal:
        await terminal.send(b"setsid nohup sleep 77777 & echo begun\r")
        await until(terminal, "begun\r\n")
        while not _processes("77777"):
            await asyncio.sleep(0.02)
        local.stop(key, reason="enough")
        with pytest.raises(BackendError, match="ended"):
            await outputs(terminal)
    local.ended(key)
    assert not _processes("77777")
    with pytest.raises(BackendError, match=NOT_RUNNING):
        await run(local, key, "true")


def _processes(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in path.read_text() and "sleep" in path.read_text():
                found.append(str(path))
    return found


async def test_lost_connection_ends_the_terminal(local: ClusterFixture) -> None:
    key = running(local)
    async with local.backend.exec.run(key, ["sh", "-c", "echo begun; sleep 66666"], in_terminal=True) as terminal:
        await until(terminal, "begun")
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while _processes("66666"):
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.05)


async def test_missing_program_is_an_error(local: ClusterFixture) -> None:
    key = running(local)
    for in_terminal in (False, True):
        with pytest.raises(BackendError, match="No such file"):
            async with local.backend.exec.run(key, ["/no/such/program"], in_terminal=in_terminal) as command:
                await outputs(command)
    with pytest.raises(BackendError, match="zero byte"):
        await run(local, key, "a\0b")


@pytest.mark.thorough
async def test_commands_of_a_pod_are_limited(local: ClusterFixture) -> None:
    key = running(local)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            await stack.enter_async_context(local.backend.exec.run(key, ["cat"]))
        with pytest.raises(BackendError, match=f"{MAX_CONNECTIONS} commands"):
            await run(local, key, "true")


async def test_pod_without_namespaces_or_of_an_older_version_is_refused(local: ClusterFixture, monkeypatch) -> None:
    key = running(local)
    order = PodFolder.order
    Path(folder_of(local, key).commands).unlink()
    with pytest.raises(BackendError, match=OLD):
        await run(local, key, "true")
    monkeypatch.setattr(PodFolder, "order", lambda folder: {**order(folder), "sandbox": None})
    with pytest.raises(BackendError, match=NOT_APART):
        await run(local, key, "true")
