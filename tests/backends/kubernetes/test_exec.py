"""Exec and port forwarding through the API server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.backends.conftest import ClusterFixture
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.streams import PodCommand, Stream
from hekla.domain.phases import PodPhase

pytestmark = pytest.mark.kubernetes
PATIENCE_SECONDS = 60.0


@pytest.fixture
def cloud(connections: None, make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


@pytest.fixture
def pod(cloud: ClusterFixture) -> PodKey:
    key = cloud.started(cloud.long())
    cloud.until(key, PodPhase.RUNNING)
    return key


async def outputs(command: PodCommand) -> tuple[bytes, bytes]:
    """The output and the errors of a command until it ends."""
    received: tuple[bytearray, bytearray] = bytearray(), bytearray()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (piece := await command.receive()) is not None:
            received[piece.is_error].extend(piece.data)
    return bytes(received[0]), bytes(received[1])


async def test_command_has_outputs_and_an_exit_code(cloud: ClusterFixture, pod: PodKey) -> None:
    async with cloud.backend.exec.run(pod, ["sh", "-c", "echo 'a b+c&d=%41'; echo bad >&2"]) as command:
        assert command.exit_code is None
        assert await outputs(command) == (b"a b+c&d=%41\n", b"bad\n")
        assert command.exit_code == 0


async def test_command_reads_its_input(cloud: ClusterFixture, pod: PodKey) -> None:
    text = b"0123456789abcdef" * 20_000
    async with cloud.backend.exec.run(pod, ["head", "-c", str(len(text))]) as command:
        reading = asyncio.create_task(outputs(command))
        await command.send(text)
        assert await reading == (text, b"")
        assert command.exit_code == 0


async def test_command_has_a_terminal_of_the_given_size(cloud: ClusterFixture, pod: PodKey) -> None:
    script = "until [ \"$(stty size)\" = '40 132' ]; do sleep 0.1; done; test -t 1 && echo terminal; read _"
    async with cloud.backend.exec.run(pod, ["sh", "-c", script], in_terminal=True) as command:
        await command.resize(columns=132, rows=40)
        async with asyncio.timeout(PATIENCE_SECONDS):
            output = await command.receive()
        await command.send(b"\r")
        await outputs(command)
    assert output is not None
    assert output.data.startswith(b"terminal")


async def test_missing_command_is_an_error(cloud: ClusterFixture, pod: PodKey) -> None:
    with pytest.raises(BackendError):
        async with cloud.backend.exec.run(pod, ["/no/such/program"]) as command:
            await outputs(command)


@asynccontextmanager
async def echo_server(port: int) -> AsyncIterator[None]:
    """A server that sends back what it receives."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()  # since Python 3.12, `wait_closed` also waits for clients, whose connections the kubelet keeps


async def receive(stream: Stream, count: int) -> bytes:
    received = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(received) < count and (piece := await stream.receive()):
            received += piece
    return received


async def test_bytes_sent_to_a_port_come_back_from_its_server(
    cloud: ClusterFixture, pod: PodKey, small_cluster: ControlPlane
) -> None:
    text = bytes(range(256)) * 1000
    async with (
        echo_server(small_cluster.port_inside),
        cloud.backend.port_forwarding.connect(pod, 8888) as stream,
        cloud.backend.port_forwarding.connect(pod, 8888) as other,
    ):
        reading = asyncio.create_task(receive(stream, len(text)))
        await stream.send(text)
        await other.send(b"beside it")
        assert await reading == text
        assert await receive(other, 9) == b"beside it"


async def test_closed_port_is_an_error(cloud: ClusterFixture, pod: PodKey) -> None:
    async with cloud.backend.port_forwarding.connect(pod, 8888) as stream:
        with pytest.raises(BackendError):
            await receive(stream, 1)


async def test_exec_and_port_forwarding_to_a_missing_pod_fail(cloud: ClusterFixture) -> None:
    missing = PodKey("nobody", "worker", 0, 0)
    with pytest.raises(UnknownPod):
        async with cloud.backend.port_forwarding.connect(missing, 80):
            pass
    with pytest.raises(UnknownPod):
        async with cloud.backend.exec.run(missing, ["sh"]):
            pass


async def test_exec_in_a_removed_pod_fails(cloud: ClusterFixture, pod: PodKey) -> None:
    await asyncio.to_thread(cloud.backend.remove, "job")
    with pytest.raises(UnknownPod):
        async with cloud.backend.exec.run(pod, ["sh"]):
            pass
