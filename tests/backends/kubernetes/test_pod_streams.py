"""What machines say about commands and ports that pretended ones do not: how they end, in each way."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import pod_streams
from hekla.backends.kubernetes.access import Access, from_key
from hekla.backends.kubernetes.keys import ClusterKey
from hekla.backends.streams import Output

PATH = "/api/v1/namespaces/hekla/pods/a"
PATIENCE_SECONDS = 60.0
ENDED_WITH_3: dict[str, Any] = {
    "status": "Failure",
    "reason": "NonZeroExitCode",
    "message": "command terminated with non-zero exit code",
    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
}
NO_SUCH = {"status": "Failure", "reason": "InternalError", "message": "no such program"}


class Server:
    """Answers one kind of websocket with these messages, then ends it, and keeps what it was sent."""

    def __init__(self, protocol: str, answers: Sequence[bytes], awaits: int = 0) -> None:
        self.protocol, self.answers, self.awaits = protocol, answers, awaits
        self.told: list[bytes] = []
        self.header = ""

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        self.header = request.headers.get("Authorization", "")
        socket = web.WebSocketResponse(protocols=[self.protocol])
        await socket.prepare(request)
        while len(self.told) < self.awaits and (message := await socket.receive()).type is WSMsgType.BINARY:
            self.told.append(message.data)
        for answer in self.answers:
            await socket.send_bytes(answer)
        await socket.close()
        return socket

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Access]:
        application = web.Application()
        application.router.add_get(f"{PATH}/exec", self._serve)
        application.router.add_get(f"{PATH}/portforward", self._serve)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            host, port = runner.addresses[0][:2]
            yield from_key(ClusterKey(f"http://{host}:{port}", token="secret"))
        finally:
            await runner.cleanup()


def command(*answers: bytes, awaits: int = 0) -> Server:
    return Server("v5.channel.k8s.io", answers, awaits)


def line(*answers: bytes) -> Server:
    return Server("v4.channel.k8s.io", answers)


def end(told: object) -> bytes:
    return b"\x03" + json.dumps(told).encode()


@pytest.mark.parametrize(("told", "code"), [({"status": "Success"}, 0), (ENDED_WITH_3, 3)])
async def test_a_command_ends_with_its_code(told: dict[str, Any], code: int) -> None:
    server = command(b"\x01out", b"\x02bad", b"\x01", end(told))
    async with server.running() as access, pod_streams.open_exec(access, PATH, ["x"], in_terminal=False) as running:
        assert [await running.receive(), await running.receive()] == [Output(b"out"), Output(b"bad", is_error=True)]
        assert await running.receive() is None
        assert await running.receive() is None
        assert running.exit_code == code
    assert server.header == "Bearer secret"


@pytest.mark.parametrize("answers", [[end(NO_SUCH)], [end("nonsense")], [b"\x03{"], []])
async def test_a_command_that_did_not_end_as_commands_do_is_an_error(answers: list[bytes]) -> None:
    async with (
        command(*answers).running() as access,
        pod_streams.open_exec(access, PATH, ["x"], in_terminal=False) as running,
    ):
        with pytest.raises(BackendError):
            await running.receive()


async def test_a_command_is_told_when_its_input_ends_and_how_large_its_terminal_is() -> None:
    server = command(end({"status": "Success"}), awaits=4)
    async with server.running() as access, pod_streams.open_exec(access, PATH, ["x"], in_terminal=True) as running:
        await running.resize(columns=80, rows=24)
        await running.send(b"a" * 40_000)
        await running.end_input()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await running.receive() is None
    size, first, second, last = server.told
    assert (size[0], json.loads(size[1:])) == (4, {"Width": 80, "Height": 24})
    assert first + second[1:] == b"\x00" + b"a" * 40_000
    assert last == bytes([255, 0])


async def test_a_line_is_over_when_the_server_in_the_pod_ends_it() -> None:
    server = line(b"\x00\xb8\x22", b"\x01\xb8\x22", b"\x00one", b"\x00", b"\x00two")
    async with server.running() as access, pod_streams.open_port(access, PATH, 8888) as found:
        assert [await found.receive() for _ in range(4)] == [b"one", b"two", b"", b""]


async def test_a_line_tells_why_there_is_no_data() -> None:
    server = line(b"\x00\xb8\x22", b"\x01\xb8\x22", b"\x01nobody listens")
    async with server.running() as access, pod_streams.open_port(access, PATH, 8888) as found:
        with pytest.raises(BackendError, match="nobody listens"):
            await found.receive()


async def test_who_is_not_let_in_is_told_so() -> None:
    async with line().running() as access:
        with pytest.raises(BackendError, match="404"):
            async with pod_streams.open_port(access, f"{PATH}/other", 1):
                pass
