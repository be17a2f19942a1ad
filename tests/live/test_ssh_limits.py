"""SSH to pods with clients that mean harm, or do things that OpenSSH does not do."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace

import asyncssh
import pytest
from asyncssh.channel import SSHClientChannel

from hekla.backends.base import PodKey
from hekla.backends.streams import Output
from hekla.domain.events import TerminalEnd
from hekla.live.guard import Visitor
from hekla.live.ssh import consumer, forwards, server
from hekla.live.ssh.output_order import output_order
from hekla.live.ssh.server import PodAccess, PodServer
from hekla.live.ssh.transport import SshTransport

PATIENCE_SECONDS = 10.0
PIECE = b"x" * 32_000


@dataclass
class Command:
    """A command in a pod. It prints `pieces` pieces and ends; it reads its input only if `reads`."""

    pieces: int = 0
    reads: bool = True
    words: Sequence[str] = ()
    printed: int = 0
    exit_code: int | None = None

    async def receive(self) -> Output | None:
        if self.printed == self.pieces:
            if not self.reads:
                await asyncio.Event().wait()
            self.exit_code = 0
            return None
        self.printed += 1
        return Output(PIECE)

    async def send(self, data: bytes) -> None:
        if not self.reads:
            await asyncio.Event().wait()

    async def end_input(self) -> None:
        """Nothing reads it."""

    async def resize(self, columns: int, rows: int) -> None:
        """It has no size."""


class Slow:
    """A server in the pod that answers in parts, after the client has ended its own."""

    def __init__(self, parts: int, pause: float) -> None:
        self.parts, self.pause = parts, pause

    async def receive(self) -> bytes:
        if not self.parts:
            return b""
        self.parts -= 1
        await asyncio.sleep(self.pause)
        return b"part"

    async def send(self, data: bytes) -> None:
        """It needs no input."""


@dataclass
class FakePod:
    """What a cluster offers of a pod. `stream`: what its ports are; without, connecting takes forever."""

    command: Command = field(default_factory=Command)
    stream: Slow | None = None
    connecting: int = 0

    @asynccontextmanager
    async def run(self, key: PodKey, words: Sequence[str], *, in_terminal: bool = False) -> AsyncIterator[Command]:
        self.command.words = words
        yield self.command

    @asynccontextmanager
    async def connect(self, key: PodKey, port: int) -> AsyncIterator[Slow]:
        self.connecting += 1
        if self.stream is None:
            await asyncio.Event().wait()
        yield self.stream


@dataclass
class Ends:
    """Both ends of a connection."""

    client: asyncssh.SSHClientConnection
    server: PodServer

    def sessions(self) -> list[server.PodSession]:
        return [channel._session for channel in self.server._connection._channels.values()]


def with_client(pod: FakePod, work: Callable[[Ends], Awaitable[None]], **options: object) -> None:
    """Runs `work` with a client that is connected to this pod."""

    async def run() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await _connected(pod, work, options)

    asyncio.run(run())


async def _connected(pod: FakePod, work: Callable[[Ends], Awaitable[None]], options: dict[str, object]) -> None:
    served = PodServer(PodAccess(PodKey("job", "main", 0, 1), "main-0", pod, pod))
    started = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)

        async def serve() -> None:
            reader, writer = await asyncio.open_connection(
                sock=(await asyncio.get_running_loop().sock_accept(listening))[0]
            )

            async def send(data: bytes) -> None:
                writer.write(data)
                await writer.drain()

            transport = SshTransport(served, send)

            async def feed() -> None:
                with suppress(OSError):
                    while data := await reader.read(65536):
                        await transport.feed(data)
                served.stop()

            feeding = asyncio.create_task(feed())
            started.set()
            try:
                await transport.run()
            finally:
                transport.close()
                feeding.cancel()
                writer.close()

        serving = asyncio.create_task(serve())
        facts = {"known_hosts": None, "config": None, "client_keys": None, "username": "hekla", "agent_path": None}
        try:
            port = listening.getsockname()[1]
            async with asyncssh.connect("127.0.0.1", port, **facts, **options) as client:
                await work(Ends(client, served))
        finally:
            await serving


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.005)


def test_a_burst_of_connections_to_ports_is_limited() -> None:
    pod = FakePod()

    async def work(ends: Ends) -> None:
        opening = [asyncio.ensure_future(ends.client.open_connection("localhost", 80)) for _ in range(60)]
        await until(lambda: sum(one.done() for one in opening) == 60 - server.MAX_FORWARDS)
        assert pod.connecting == server.MAX_FORWARDS
        for one in opening:
            one.cancel()
        await asyncio.wait(opening)

    with_client(pod, work)


def test_channels_that_run_nothing_are_limited() -> None:
    async def work(ends: Ends) -> None:
        facts = (ends.client, asyncio.get_running_loop(), False, None, "strict", 2**20, 2**15)
        for _ in range(server.MAX_CHANNELS):
            await SSHClientChannel(*facts)._open(b"session")
        with pytest.raises(asyncssh.ChannelOpenError, match="Too many open channels"):
            await SSHClientChannel(*facts)._open(b"session")
        windows = [session._limit for session in ends.sessions()]
        assert windows[0] == server.WINDOW_BYTES
        assert sum(windows) < 8 * server.WINDOW_BYTES

    with_client(FakePod(), work)


def test_tiny_packets_end_the_connection() -> None:
    pod = FakePod(Command(pieces=1000))

    async def work(ends: Ends) -> None:
        with suppress(asyncssh.Error, OSError):
            await ends.client.run("yes", max_pktsize=16, encoding=None)
        await ends.client.wait_closed()

    with_client(pod, work)
    assert pod.command.printed < 10


def test_output_waits_for_the_end_of_a_key_exchange() -> None:
    """Also of a client that names a large window, and only later ends the exchange."""
    pod = FakePod(Command(pieces=2000))

    async def work(ends: Ends) -> None:
        ended = asyncio.ensure_future(ends.client.run("yes", window=2**31, encoding=None))
        await until(lambda: pod.command.printed > 20)
        go_on, ends.client._recv_handler = ends.client._recv_handler, lambda: False
        ends.client._send_kexinit()
        ends.client._kexinit_sent = True
        await until(lambda: not ends.server._connection._kex_complete)
        before = pod.command.printed
        for _ in range(2000):
            await asyncio.sleep(0)
        assert pod.command.printed - before < 200
        ends.client._recv_handler = go_on
        ends.client._recv_data()
        assert len((await ended).stdout) == 2000 * len(PIECE)

    with_client(pod, work)


def test_unread_sizes_signals_and_values_are_limited() -> None:
    pod = FakePod(Command(reads=False))

    async def work(ends: Ends) -> None:
        values = {f"LC_{chr(65 + number // 26)}{chr(65 + number % 26)}": "1" for number in range(200)}
        process = await ends.client.create_process("sleep", term_type="xterm", env=values, encoding=None)
        process.stdin.write(b"input")
        for number in range(3000):
            process.change_terminal_size(number + 1, 20)
            process.send_signal("INT")
        process.change_terminal_size(77, 20)
        await until(lambda: bool(ends.sessions()) and ends.sessions()[0]._chan.get_terminal_size()[0] == 77)
        assert len(ends.sessions()[0]._recv_buf[None]) <= server.MAX_UNREAD
        assert sum(word.startswith("LC_") for word in pod.command.words) == server.MAX_VALUES

    with_client(pod, work)


def test_no_key_exchange_needs_a_new_rsa_key() -> None:
    async def work(ends: Ends) -> None:
        raise AssertionError(ends)

    with pytest.raises(asyncssh.KeyExchangeFailed):
        with_client(FakePod(), work, kex_algs=["rsa2048-sha256"])


def test_a_command_with_nul_is_refused() -> None:
    async def work(ends: Ends) -> None:
        ended = await ends.client.run("echo \0", encoding=None)
        assert (ended.exit_status, ended.stderr) == (126, b"hekla: A command has no NUL characters.\r\n")

    with_client(FakePod(), work)


def test_a_long_answer_is_whole_after_the_end_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwards, "LINGER_SECONDS", 0.25)

    async def work(ends: Ends) -> None:
        reader, writer = await ends.client.open_connection("localhost", 80)
        writer.write_eof()
        assert await reader.read() == b"part" * 6

    with_client(FakePod(stream=Slow(6, 0.1)), work)


async def test_the_end_is_recorded_after_the_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the connection ends while its begin is recorded, or before it does anything."""
    recorded: list[str] = []
    started, may_go_on = threading.Event(), threading.Event()

    def record_ssh(*_args: object, **_facts: object) -> None:
        started.set()
        assert may_go_on.wait(PATIENCE_SECONDS)
        recorded.append("begin")

    async def nothing(*_args: object) -> None:
        """Nobody is there to read it."""

    monkeypatch.setattr(consumer.services, "record_ssh", record_ssh)
    monkeypatch.setattr(consumer.services, "record_ssh_end", lambda *_args, **_facts: recorded.append("end"))
    monkeypatch.setattr(consumer, "actor_of", lambda user: user)
    for method in ("send_json", "close"):
        monkeypatch.setattr(consumer.SshConsumer, method, nothing)
    access = PodAccess(PodKey("job", "main", 0, 1), "main-0", FakePod(), None)
    found = SimpleNamespace(pod=SimpleNamespace(pk=1), user=SimpleNamespace(pk=1), access=access)

    one = consumer.SshConsumer()
    one.visitor = Visitor(1, None)
    consumer.connections().enter(one)
    one._serving = asyncio.create_task(one._serve(found))
    one.stop(TerminalEnd.RIGHTS)  # at once
    await until(started.is_set)
    for _ in range(10):
        await asyncio.sleep(0)
    assert recorded == []
    may_go_on.set()
    await one.ended()
    assert recorded == ["begin", "end"]
    assert one not in consumer.connections()._open
    assert one.is_closed


async def test_one_piece_of_output_is_sent_in_each_round_of_the_event_loop() -> None:
    rounds, sent = 0, list[int]()

    async def tick() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def print_without_end() -> None:
        for _piece in range(20):
            await output_order().next()
            sent.append(rounds)

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(print_without_end() for _connection in range(10)))
    ticking.cancel()
    assert len(sent) == 200
    assert max(Counter(sent).values()) == 1
