"""Keystrokes in a terminal of the pod: the time from a key to its echo, as a page gets it."""

import base64
import json
import time

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from hekla.bench.proxy.place import ProxyBench
from hekla.cli.client import Failure

_QUIET_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_LINE = 40
_KEY, _NEW_LINE = "a", "\x15"
"""A letter that the shell echoes; Ctrl+U, which deletes the line, before it gets longer than the terminal."""


def delays(place: ProxyBench, count: int) -> list[float]:
    """The seconds of `count` keystrokes. Raises Failure."""
    address, origin = f"ws://{place.host}/ws/terminals/{place.pod_id}/", Origin(f"http://{place.host}")
    try:
        with connect(address, origin=origin, additional_headers={"Cookie": place.cookie}) as page:
            _until_quiet(page)
            found = []
            for number in range(count):
                if number and not number % _LINE:
                    _send(page, {"type": "input", "data": _NEW_LINE})
                    _until_quiet(page)
                found.append(_delay(page))
                time.sleep(_PAUSE_SECONDS)
            _send(page, {"type": "end"})
            return found
    except (WebSocketException, TimeoutError, OSError) as error:
        raise Failure(f"The terminal of the pod failed: {error}") from error


def _delay(page: ClientConnection) -> float:
    began = time.perf_counter()
    _send(page, {"type": "input", "data": _KEY})
    while _KEY.encode() not in _output(json.loads(page.recv(_PATIENCE_SECONDS))):
        pass
    return time.perf_counter() - began


def _send(page: ClientConnection, message: dict[str, str]) -> None:
    page.send(json.dumps(message))


def _output(message: dict[str, str]) -> bytes:
    return base64.b64decode(message["data"]) if message["type"] == "output" else b""


def _until_quiet(page: ClientConnection) -> None:
    """Read until nothing comes for a while: the shell has written its prompt."""
    while True:
        try:
            page.recv(_QUIET_SECONDS)
        except TimeoutError:
            return
