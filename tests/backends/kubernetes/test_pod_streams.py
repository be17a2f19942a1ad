"""Exec and port-forward streams as real kubelets send them: how they end, in each case."""

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
    """Answers one kind of websocket with these messages, then closes it, and records what it receives."""

    def __init__(self, protocol: str, answers: Sequence[bytes], awaits: int = 0) -> None:
        self.protocol, self.answers, self.awaits = protocol, answers, awaits
        self.received: list[bytes] = []
        self.header = ""

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        self.header = request.headers.get("Authorization", "")
        socket = web.WebSocketResponse(protocols=[self.protocol])
        await socket.prepare(request)
        while len(self.received) < self.awaits and (message := await socket.receive()).type is WSMsgType.BINARY:
            self.received.append(message.data)
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


def exec_server(*answers: bytes, awaits: int = 0) -> Server:
    return Server("v5.channel.k8s.io", answers, awaits)


def port_server(*answers: bytes) -> Server:
    return Server("v4.channel.k8s.io", answers)


def status_message(status: object) -> bytes:
    return b"\x03" + json.dumps(status).encode()


@pytest.mark.parametrize(("status", "code"), [({"status": "Success"}, 0), (ENDED_WITH_3, 3)])
async def test_command_ends_with_its_exit_code(status: dict[str, Any], code: int) -> None:
    server = exec_server(b"\x01out", b"\x02bad", b"\x01", status_message(status))
    async with server.running() as access, pod_streams.open_exec(access, PATH, ["x"], in_terminal=False) as running:
        assert [await running.receive(), await running.receive()] == [Output(b"out"), Output(b"bad", is_error=True)]
        assert await running.receive() is None
        assert await running.receive() is None
        assert running.exit_code == code
    assert server.header == "Bearer secret"


@pytest.mark.parametrize("answers", [[status_message(NO_SUCH)], [status_message("nonsense")], [b"\x03{"], []])
async def test_command_without_a_valid_status_is_an_error(answers: list[bytes]) -> None:
    async with (
        exec_server(*answers).running() as access,
        pod_streams.open_exec(access, PATH, ["x"], in_terminal=False) as running,
    ):
        with pytest.raises(BackendError):
            await running.receive()


async def test_end_of_input_and_terminal_size_are_sent() -> None:
    server = exec_server(status_message({"status": "Success"}), awaits=4)
    async with server.running() as access, pod_streams.open_exec(access, PATH, ["x"], in_terminal=True) as running:
        await running.resize(columns=80, rows=24)
        await running.send(b"a" * 40_000)
        await running.end_input()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await running.receive() is None
    size, first, second, last = server.received
    assert (size[0], json.loads(size[1:])) == (4, {"Width": 80, "Height": 24})
    assert first + second[1:] == b"\x00" + b"a" * 40_000
    assert last == bytes([255, 0])


async def test_port_stream_ends_with_the_server_in_the_pod() -> None:
    server = port_server(b"\x00\xb8\x22", b"\x01\xb8\x22", b"\x00one", b"\x00", b"\x00two")
    async with server.running() as access, pod_streams.open_port(access, PATH, 8888) as found:
        assert [await found.receive() for _ in range(4)] == [b"one", b"two", b"", b""]


async def test_port_stream_reports_the_error() -> None:
    server = port_server(b"\x00\xb8\x22", b"\x01\xb8\x22", b"\x01nobody listens")
    async with server.running() as access, pod_streams.open_port(access, PATH, 8888) as found:
        with pytest.raises(BackendError, match="nobody listens"):
            await found.receive()


async def test_refused_connection_is_an_error() -> None:
    async with port_server().running() as access:
        with pytest.raises(BackendError, match="404"):
            async with pod_streams.open_port(access, f"{PATH}/other", 1):
                pass
