"""Long bodies of uploads reach Django in pieces, and what arrived is written when the network fails."""

from typing import Any

import pytest

from hekla.pages.admission import upload_pieces
from hekla.pages.admission.upload_pieces import PIECE_BYTES, UploadPieces

ADDRESS = "/api/v1/uploads/0e8f4f6e-2f4c-4b8e-9d0b-0a7c5b8e6f11"
Message = dict[str, Any]


class Store:
    """Django in place of the real one: it stores pieces, and refuses them from the number `refused` on."""

    def __init__(self, refused: int = 1000) -> None:
        self.data, self.requests, self.refused = b"", list[dict[bytes, bytes]](), refused

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        self.requests.append(headers)
        message = await receive()
        assert not message["more_body"]
        assert int(headers[b"content-length"]) == len(message["body"])
        status = 204 if len(self.requests) <= self.refused else 409
        if status == 204:
            assert headers[b"upload-offset"] == str(len(self.data)).encode()
            self.data += message["body"]
        found = [(b"Upload-Offset", str(len(self.data)).encode()), (b"Upload-Fence", b"7")]
        await send({"type": "http.response.start", "status": status, "headers": found})
        await send({"type": "http.response.body", "body": b""})


async def send(store: Any, messages: list[Message], method: str = "PATCH", path: str = ADDRESS) -> list[Message]:
    """The answers to a request whose body arrives in these messages."""
    answers: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def answer(message: Message) -> None:
        answers.append(message)

    headers = [(b"upload-offset", b"0"), (b"content-length", b"12"), (b"cookie", b"c"), (b"expect", b"100-continue")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    await UploadPieces(store)(scope, receive, answer)
    return answers


def body(data: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


async def test_long_body_is_written_in_pieces() -> None:
    store, data = Store(), bytes(range(256)) * 10_000
    parts = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    answers = await send(store, [*(body(part, more=True) for part in parts), body(b"", more=False)])
    assert (store.data, len(store.requests), answers[0]["status"]) == (data, 3, 204)
    assert all(headers[b"cookie"] == b"c" and b"expect" not in headers for headers in store.requests)
    assert [headers.get(b"upload-fence") for headers in store.requests] == [None, b"7", b"7"]
    assert max(int(headers[b"content-length"]) for headers in store.requests) == PIECE_BYTES


async def test_what_arrived_is_written_when_the_network_fails() -> None:
    store = Store()
    answers = await send(store, [body(b"abc", more=True), {"type": "http.disconnect"}])
    assert (store.data, answers) == (b"abc", [])


async def test_silent_client_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_pieces, "_LONGEST_SILENCE_SECONDS", 0.0)
    store = Store()
    answers = await send(store, [body(b"abc", more=True)])
    assert answers[0]["status"] == 204


async def test_refused_piece_ends_the_request() -> None:
    store = Store(refused=1)
    messages = [body(bytes(PIECE_BYTES), more=True) for _ in range(5)]
    answers = await send(store, messages)
    assert (answers[0]["status"], len(store.data), len(messages)) == (409, PIECE_BYTES, 3)


@pytest.mark.parametrize(("method", "path"), [("GET", ADDRESS), ("PATCH", "/api/v1/jobs"), ("PATCH", f"{ADDRESS}/x")])
async def test_other_requests_pass(method: str, path: str) -> None:
    passed: list[str] = []

    async def application(scope: Message, _receive: Any, _send: Any) -> None:
        passed.append(scope["path"])

    await send(application, [], method, path)
    assert passed == [path]
