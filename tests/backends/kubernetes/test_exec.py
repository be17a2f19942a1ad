"""Into pods through the API server: commands run, and ports lead where they should."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.backends.conftest import Place
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.streams import PodCommand, Stream
from hekla.domain.phases import PodPhase

pytestmark = pytest.mark.kubernetes
PATIENCE_SECONDS = 60.0


@pytest.fixture
def cloud(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes")


@pytest.fixture
def pod(cloud: Place) -> PodKey:
    key = cloud.started(cloud.long())
    cloud.until(key, PodPhase.RUNNING)
    return key


async def spoken(command: PodCommand) -> tuple[bytes, bytes]:
    """All that it writes until it ends: its output and its errors."""
    said: tuple[bytearray, bytearray] = bytearray(), bytearray()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (piece := await command.receive()) is not None:
            said[piece.is_error].extend(piece.data)
    return bytes(said[0]), bytes(said[1])


async def test_a_command_gives_its_outputs_and_its_end(cloud: Place, pod: PodKey) -> None:
    async with cloud.backend.exec.run(pod, ["sh", "-c", "echo 'a b+c&d=%41'; echo bad >&2"]) as command:
        assert command.exit_code is None
        assert await spoken(command) == (b"a b+c&d=%41\n", b"bad\n")
        assert command.exit_code == 0


async def test_a_command_reads_what_is_sent(cloud: Place, pod: PodKey) -> None:
    text = b"0123456789abcdef" * 20_000
    async with cloud.backend.exec.run(pod, ["head", "-c", str(len(text))]) as command:
        reading = asyncio.create_task(spoken(command))
        await command.send(text)
        assert await reading == (text, b"")
        assert command.exit_code == 0


async def test_a_command_may_have_a_terminal_of_the_size_that_one_says(cloud: Place, pod: PodKey) -> None:
    script = "until [ \"$(stty size)\" = '40 132' ]; do sleep 0.1; done; test -t 1 && echo terminal; read _"
    async with cloud.backend.exec.run(pod, ["sh", "-c", script], in_terminal=True) as command:
        await command.resize(columns=132, rows=40)
        async with asyncio.timeout(PATIENCE_SECONDS):
            said = await command.receive()
        await command.send(b"\r")
        await spoken(command)
    assert said is not None
    assert said.data.startswith(b"terminal")


async def test_a_command_that_is_not_there_is_an_error(cloud: Place, pod: PodKey) -> None:
    with pytest.raises(BackendError):
        async with cloud.backend.exec.run(pod, ["/no/such/program"]) as command:
            await spoken(command)


@asynccontextmanager
async def echoing(port: int) -> AsyncIterator[None]:
    """A server that sends back whatever comes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port):
        yield


async def returned(line: Stream, count: int) -> bytes:
    said = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(said) < count and (piece := await line.receive()):
            said += piece
    return said


async def test_bytes_sent_into_a_port_come_back_from_the_server_there(
    cloud: Place, pod: PodKey, small_cluster: ControlPlane
) -> None:
    text = bytes(range(256)) * 1000
    async with (
        echoing(small_cluster.port_inside),
        cloud.backend.port_forwarding.connect(pod, 8888) as line,
        cloud.backend.port_forwarding.connect(pod, 8888) as other,
    ):
        reading = asyncio.create_task(returned(line, len(text)))
        await line.send(text)
        await other.send(b"beside it")
        assert await reading == text
        assert await returned(other, 9) == b"beside it"


async def test_a_port_where_nobody_listens_is_an_error(cloud: Place, pod: PodKey) -> None:
    async with cloud.backend.port_forwarding.connect(pod, 8888) as line:
        with pytest.raises(BackendError):
            await returned(line, 1)


async def test_nobody_gets_into_a_pod_that_is_not_there(cloud: Place) -> None:
    nobody = PodKey("nobody", "worker", 0, 0)
    with pytest.raises(UnknownPod):
        async with cloud.backend.port_forwarding.connect(nobody, 80):
            pass
    with pytest.raises(UnknownPod):
        async with cloud.backend.exec.run(nobody, ["sh"]):
            pass


async def test_nobody_gets_into_a_pod_that_is_gone(cloud: Place, pod: PodKey) -> None:
    await asyncio.to_thread(cloud.backend.remove, "job")
    with pytest.raises(UnknownPod):
        async with cloud.backend.exec.run(pod, ["sh"]):
            pass
