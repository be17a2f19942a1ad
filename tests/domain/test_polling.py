"""What of the traffic of a tool's page comes from a person."""

import pytest

from hekla.domain.polling import is_message_of_person, is_request_of_person
from hekla.domain.tools import Tool

JUPYTER, BOARD, CODE, PORT = Tool.JUPYTERLAB, Tool.TENSORBOARD, Tool.CODE_SERVER, Tool.PORT


@pytest.mark.parametrize(
    ("tool", "method", "target", "mode", "counts"),
    [
        (JUPYTER, "GET", "/lab", "navigate", True),
        (JUPYTER, "GET", "/api/kernels?1700000000000", "cors", False),
        (JUPYTER, "GET", "/api/kernels/6f1c", "cors", False),
        (JUPYTER, "GET", "/api/sessions?17", "cors", False),
        (JUPYTER, "GET", "/api/terminals?17", "cors", False),
        (JUPYTER, "GET", "/api/kernelspecs?17", "cors", False),
        (JUPYTER, "GET", "/api/metrics/v1?17", "cors", False),
        (JUPYTER, "GET", "/api/contents?content=1&hash=0&17", "cors", False),
        (JUPYTER, "GET", "/api/contents/data?content=1&hash=0&17", "cors", False),
        (JUPYTER, "GET", "/api/contents/a.ipynb?type=notebook&content=1&17", "cors", True),
        (JUPYTER, "GET", "/api/contents/a.ipynb?content=0&hash=0&17", "cors", False),
        (JUPYTER, "PUT", "/api/contents/a.ipynb?17", "cors", True),
        (JUPYTER, "POST", "/api/kernels?17", "cors", True),
        (JUPYTER, "GET", "/lab/api/news", "cors", False),
        (JUPYTER, "GET", "/files/plot.png", "no-cors", True),
        (BOARD, "GET", "/", "navigate", True),
        (BOARD, "GET", "/data/runs", "cors", False),
        (BOARD, "GET", "/data/plugin/scalars/tags", "cors", False),
        (CODE, "GET", "/?folder=/work", "navigate", True),
        (CODE, "GET", "/stable-6f1c/static/out/vs/code/browser/workbench/workbench.js", "no-cors", False),
        (CODE, "GET", "/healthz", "cors", False),
        (CODE, "GET", "/vscode-remote-resource?path=/work/a.png", "cors", False),
        (PORT, "GET", "/", "navigate", True),
        (PORT, "GET", "/", "", True),
        (PORT, "GET", "/status", "cors", False),
        (PORT, "POST", "/predict", "cors", True),
    ],
)
def test_requests(tool: Tool, method: str, target: str, mode: str, counts: bool) -> None:
    assert is_request_of_person(tool, method, target, mode) is counts


@pytest.mark.parametrize(
    ("tool", "target", "size", "counts"),
    [
        (JUPYTER, "/api/kernels/6f1c/channels?session_id=1", 400, True),
        (JUPYTER, "/terminals/websocket/1", 13, True),
        (JUPYTER, "/api/events/subscribe", 400, False),
        (JUPYTER, "/api/collaboration/room/x", 400, False),
        (PORT, "/stream", 13, False),
        (PORT, "/stream", 200, True),
    ],
)
def test_messages(tool: Tool, target: str, size: int, counts: bool) -> None:
    assert is_message_of_person(tool, target, "x" * size) is counts


def message(body: bytes, kind: int = 1) -> bytes:
    """As VS Code's page sends it: the kind, two numbers, the size."""
    return bytes([kind]) + (7).to_bytes(4) + (9).to_bytes(4) + len(body).to_bytes(4) + body


def to_channel(channel: bytes, command: bytes, kind: int = 100) -> bytes:
    words = b"".join(b"\x01" + bytes([len(word)]) + word for word in (channel, command))
    return message(b"\x04\x04\x06" + bytes([kind]) + b"\x06\xa6\x05" + words + b"\x00")


def to_extensions(name: bytes, kind: int = 1) -> bytes:
    return message(bytes([kind]) + (277).to_bytes(4) + b"W" + bytes([len(name)]) + name + b"\x00\x00\x00\x02[]")


KEEPS_OPEN, REPLY = message(b"", 9), message(b"\x07\x00\x00\x01J")


@pytest.mark.parametrize(
    ("sent", "counts"),
    [
        (KEEPS_OPEN, False),
        (message(b"", 3), False),
        (message(b"\x05\x00\x00\x01J") + REPLY, False),
        (to_extensions(b"$onFileEvent"), False),
        (to_extensions(b"$provideDecorations", 2), False),
        (to_extensions(b"$acceptModelChanged"), True),
        (to_extensions(b"$acceptEditorPropertiesChanged"), True),
        (to_extensions(b"$executeContributedCommand"), True),
        (to_channel(b"telemetry", b"ping"), False),
        (to_channel(b"remoteFilesystem", b"stat"), False),
        (to_channel(b"remoteFilesystem", b"fileChange", 102), False),
        (to_channel(b"remoteterminal", b"$acknowledgeDataEvent"), False),
        (to_channel(b"remoteterminal", b"$input"), True),
        (to_channel(b"remoteFilesystem", b"rename"), True),
        (KEEPS_OPEN + REPLY + to_channel(b"remoteterminal", b"$input"), True),
        (KEEPS_OPEN * 64 + REPLY, True),
        (message(b"\x01"), True),
        (b"", False),
        (b"\x01" + b"\xff" * 40, False),
    ],
)
def test_messages_of_an_editor(sent: bytes, counts: bool) -> None:
    assert is_message_of_person(CODE, "/stable-6f1c?reconnectionToken=6f1c", sent) is counts
