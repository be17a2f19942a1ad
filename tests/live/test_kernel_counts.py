"""Counting busy kernels of servers that are hostile, or hang: each costs little, and none hides the others."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hekla.backends.base import PodKey
from hekla.workbench import kernels
from hekla.workbench.kernels import KernelServer

_HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
_KEY = PodKey("a" * 32, "main", 0, 1, tenant="lab")


class FakePorts:
    """A pod that answers with these pieces, each again and again if it is `endless`; None: never."""

    def __init__(self, pieces: list[bytes] | None, *, endless: bool = False, error: Exception | None = None) -> None:
        self.pieces, self._endless, self._error = pieces, endless, error
        self.read, self.base = 0, ""

    @asynccontextmanager
    async def connect(self, _key: PodKey, _port: int) -> AsyncIterator["FakePorts"]:
        if self._error is not None:
            raise self._error
        yield self

    async def send(self, data: bytes) -> None:
        assert data.startswith(f"GET {self.base}/api/kernels HTTP/1.0\r\n".encode())

    async def receive(self) -> bytes:
        if self.pieces is None:
            await asyncio.Event().wait()
        self.read += 1
        assert self.pieces is not None
        if self._endless:
            return self.pieces[0]
        return self.pieces.pop(0) if self.pieces else b""


def count(*ports: FakePorts) -> list[int | None]:
    return kernels.count_busy([KernelServer(one, _KEY, 1, "secret", one.base) for one in ports])  # type: ignore[arg-type]


def answer(document: Any) -> FakePorts:
    return FakePorts([_HEAD, json.dumps(document).encode()])


def test_server_below_a_path_is_read_there() -> None:
    ports = answer([{"execution_state": "busy"}])
    ports.base = "/label"
    assert count(ports) == [1]


@pytest.mark.parametrize(
    "document",
    [
        *([{"execution_state": state}] for state in ([], {}, 1, None)),
        *({"execution_state": "busy"}, ["busy"], [[]], "busy", None),
    ],
)
def test_odd_answer_is_not_known_and_hides_no_other_session(document: Any) -> None:
    good = [{"execution_state": "busy"}, {"execution_state": "idle"}, {"execution_state": "starting"}]
    assert count(answer(document), answer(good)) == [None, 2]


def test_mistake_with_one_server_hides_no_other_session() -> None:
    assert count(FakePorts([], error=RuntimeError("odd")), answer([])) == [None, 0]


def test_answer_without_end_is_read_up_to_a_limit() -> None:
    slow, large = FakePorts([b"a"], endless=True), FakePorts([b"a" * 65536], endless=True)
    assert count(slow, large) == [None, None]
    assert (slow.read, large.read) == (256, 5)


def test_servers_that_hang_cost_some_seconds_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_TOGETHER_SECONDS", 0.2)
    begin = time.monotonic()
    assert count(*(FakePorts(None) for _number in range(100))) == [None] * 100
    assert time.monotonic() - begin < 3
