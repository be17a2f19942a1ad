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
        (CODE, "/stable-6f1c?reconnectionToken=6f1c", 13, False),
        (CODE, "/stable-6f1c?reconnectionToken=6f1c", 90, True),
        (PORT, "/stream", 13, False),
        (PORT, "/stream", 200, True),
    ],
)
def test_messages(tool: Tool, target: str, size: int, counts: bool) -> None:
    assert is_message_of_person(tool, target, size) is counts
