"""Parts of the proxy of sessions against tools that are hostile or hang, and browsers that leave."""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from hekla.apps.workbench.entry import EntryPass
from hekla.backends.local import sockets as local_sockets
from hekla.domain.tools import Tool
from hekla.live.proxy import admissions, sockets
from hekla.live.proxy.exchange import BrowserLeft, Exchange, ProxyTarget
from hekla.live.proxy.headers import Destination, response_headers
from hekla.live.proxy.upstream import Connection, ResponseParser, UpstreamError, UpstreamPool

NOWHERE = Destination(b"localhost:1", b"http://x.localhost")


class FakeStream:
    """A connection to a tool. `reads`: whether the tool reads. It ends with `end`."""

    def __init__(self, *, reads: bool = True) -> None:
        self.reads, self.sent = reads, list[bytes]()
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_closed = False

    async def send(self, data: bytes) -> None:
        self.sent.append(data)
        if not self.reads:
            await asyncio.Event().wait()

    async def receive(self) -> bytes:
        return await self.answers.get()

    async def __aenter__(self) -> "FakeStream":
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    "answer",
    [
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", *[b"a" * 65536] * 2],
        [b"HTTP/1.1 103 Early\r\nX: ", *[b"a" * 65536] * 2],
        [b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"],
    ],
    ids=["trailer", "interim", "status"],
)
def test_fields_without_end_and_odd_statuses_are_refused(answer: list[bytes]) -> None:
    parser = ResponseParser(is_head_request=False)
    for data in answer[:-1]:
        parser.feed(data)
    with pytest.raises(UpstreamError):
        parser.feed(answer[-1])


def test_body_of_any_length_in_large_pieces_passes() -> None:
    parser = ResponseParser(is_head_request=False)
    parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")
    assert sum(len(part) for _time in range(3) for part in parser.feed(b"a" * 1_000_000)) == 3_000_000
    assert (parser.is_complete, parser.is_reusable) == (True, True)


def test_length_of_a_response_that_has_no_body_is_not_passed_on() -> None:
    parser = ResponseParser(is_head_request=False)
    parser.feed(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: x\r\n\r\n")
    assert (parser.is_complete, parser.headers) == (True, [(b"etag", b"x")])


def test_headers_that_concern_more_than_the_session_do_not_reach_the_browser() -> None:
    hostile = ["Clear-Site-Data", "X-Accel-Redirect", "X-Sendfile", "Alt-Svc"]
    headers = [*((name.lower().encode(), b"x") for name in hostile), (b"x-accel-buffering", b"no")]
    assert response_headers(headers, NOWHERE, "own") == [(b"x-accel-buffering", b"no")]


def _open_socket(stream: FakeStream) -> sockets.ToolSocket:
    """As after the handshake."""
    tool = sockets.ToolSocket(Connection(stream, AsyncExitStack()), b"/", [])
    tool._protocol = ClientProtocol(parse_uri("ws://localhost/"), state=State.OPEN)
    return tool


def test_message_of_empty_frames_needs_no_memory() -> None:
    async def work() -> int:
        stream, sent = FakeStream(), list[dict[str, Any]]()
        tool = _open_socket(stream)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        frames = [Frame(Opcode.BINARY, b"ab", fin=False), *[Frame(Opcode.CONT, b"", fin=False)] * 1000]
        for frame in frames:
            assert tool._whole(frame) is None
        assert len(tool._parts) == 2
        assert tool._whole(Frame(Opcode.CONT, b"c")) == {"bytes": b"abc"}
        stream.answers.put_nowait(b"\x81\x02hi\x88\x02\x03\xe8")
        code = await tool.messages(send)
        assert sent == [{"type": "websocket.send", "text": "hi"}]
        return code

    assert asyncio.run(work()) == 1000


def test_tool_that_sends_tiny_messages_without_pause_leaves_time_to_others() -> None:
    async def work() -> tuple[int, int]:
        stream, sent, turns = FakeStream(), list[dict[str, Any]](), 0
        tool = _open_socket(stream)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async def work_of_others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        others = asyncio.create_task(work_of_others())
        stream.answers.put_nowait(b"\x82\x00" * 16384 + b"\x88\x02\x03\xe8")
        assert await tool.messages(send) == 1000
        others.cancel()
        return len(sent), turns

    messages, turns = asyncio.run(work())
    assert messages == 16384
    assert turns > messages / 100


def test_tool_that_reads_only_after_it_was_read_does_not_hang_and_its_end_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "_CLOSE_SECONDS", 0.01)

    async def work() -> None:
        stream, got = FakeStream(reads=False), asyncio.Event()
        tool = _open_socket(stream)

        async def send(_message: dict[str, Any]) -> None:
            got.set()

        sending = asyncio.create_task(tool.send({"bytes": b"x"}))
        reading = asyncio.create_task(tool.messages(send))
        stream.answers.put_nowait(b"\x81\x02hi")
        await got.wait()
        assert not sending.done()
        stream.answers.put_nowait(b"\x81\x02hi")
        got.clear()
        await got.wait()
        await tool.close(1000)
        for task in (sending, reading):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(asyncio.wait_for(work(), 5))


def test_request_ends_when_its_browser_leaves_before_the_first_byte() -> None:
    async def work() -> None:
        stream = FakeStream()
        pool = UpstreamPool(lambda: stream)  # type: ignore[arg-type, return-value]
        messages = [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]

        async def receive() -> dict[str, Any]:
            return messages.pop(0)

        async def send(_message: dict[str, Any]) -> None:
            raise AssertionError("nothing to send")

        scope = {"method": "GET", "headers": [], "raw_path": b"/", "query_string": b""}
        with pytest.raises(BrowserLeft):
            await Exchange(scope, receive, send, ProxyTarget(pool, NOWHERE, "own")).run()
        await asyncio.gather(*pool._closing)
        assert (stream.is_closed, pool._slots._value) == (True, 64)

    asyncio.run(asyncio.wait_for(work(), 5))


def test_connection_to_a_server_that_reads_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_sockets, "_CLOSE_SECONDS", 0.05)

    async def work() -> None:
        ended = asyncio.Event()

        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await ended.wait()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with local_sockets.open_socket("127.0.0.1", port) as stream:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stream.send(b"x" * 32_000_000), 0.2)
            transport = stream.transport
            assert transport.get_write_buffer_size() > 0
        assert transport.get_write_buffer_size() == 0
        ended.set()
        server.close()

    asyncio.run(asyncio.wait_for(work(), 10))


def test_sessions_end_while_the_report_of_their_users_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = UpstreamPool(FakeStream)  # type: ignore[arg-type, return-value]
    grant = admissions.Grant(frozenset(), NOWHERE, pool, 1, 0, Tool.PORT)  # type: ignore[arg-type]
    entry = EntryPass("a" * 26, 1, login="x")
    answers, reports = iter([grant, {entry}, set()]), list[object]()

    async def answer(_work: object) -> object:
        return next(answers)

    async def report(used: object, **_facts: object) -> None:
        reports.append(used)
        await asyncio.Event().wait()

    monkeypatch.setattr(admissions, "in_thread", answer)
    monkeypatch.setattr(admissions, "report", report)

    async def work() -> None:
        known = admissions.Admissions()
        one, _grant = await known.find(entry.slug, entry.encrypt())
        monkeypatch.setattr(known, "watch", lambda _one: None)

        async def use() -> None:
            with one.opened():
                await asyncio.Event().wait()

        using = asyncio.create_task(use())
        await asyncio.sleep(0)
        await known.look()
        assert not one.has_ended
        await known.look()
        with pytest.raises(asyncio.CancelledError):
            await using
        assert (one.has_ended, reports) == (True, [[one]])

    asyncio.run(work())


def test_another_ticket_of_the_same_login_gives_no_more_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = UpstreamPool(FakeStream)  # type: ignore[arg-type, return-value]
    grant = admissions.Grant(frozenset(), NOWHERE, pool, 1, 0, Tool.PORT)  # type: ignore[arg-type]

    async def answer(_work: object) -> admissions.Grant:
        return grant

    monkeypatch.setattr(admissions, "in_thread", answer)

    async def work() -> None:
        known, entry = admissions.Admissions(), EntryPass("a" * 26, 1, login="x")
        first, _grant = await known.find(entry.slug, entry.encrypt())
        second, _grant = await known.find(entry.slug, entry.encrypt())
        other = EntryPass(entry.slug, 1, login="y")
        third, _grant = await known.find(entry.slug, other.encrypt())
        assert (second is first, third is first) == (True, False)
        known.forget(first)
        known.forget(third)
        assert known._admissions == {}
        known._task.cancel()  # type: ignore[union-attr]

    asyncio.run(work())
