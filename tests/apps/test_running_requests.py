"""The requests of one caller: how many run at once, with a short and with a long queue."""

import asyncio
from typing import Any

import pytest

from hekla.pages.admission import running
from hekla.pages.admission.running import MAX_BURST, MAX_QUEUED, MAX_RUNNING, RunningRequests

REQUEST_SECONDS = 0.005


class Answers:
    """An application that answers after a moment, and notes how many of its requests run at once."""

    def __init__(self) -> None:
        self.now, self.at_once = 0, list[int]()

    async def __call__(self, *_asgi: Any) -> None:
        self.now += 1
        self.at_once.append(self.now)
        try:
            await asyncio.sleep(REQUEST_SECONDS)
        finally:
            self.now -= 1


def scope(address: str = "10.0.0.1") -> dict[str, Any]:
    return {"type": "http", "path": "/api/v1/jobs", "headers": [], "client": (address, 1)}


async def send_many(front: RunningRequests, count: int) -> int:
    """Send requests of one caller at once. Returns the number of refused ones."""
    refused = 0

    async def send(message: dict[str, Any]) -> None:
        nonlocal refused
        refused += message.get("status") == 429

    await asyncio.gather(*(front(scope(), None, send) for _ in range(count)))
    return refused


async def test_short_queue_runs_several_at_once() -> None:
    answers = Answers()
    assert await send_many(RunningRequests(answers), MAX_RUNNING + MAX_BURST) == 0
    assert max(answers.at_once) == MAX_RUNNING
    assert len(answers.at_once) == MAX_RUNNING + MAX_BURST


async def test_long_queue_runs_one_at_a_time_and_is_answered_whole() -> None:
    answers = Answers()
    assert await send_many(RunningRequests(answers), MAX_RUNNING + MAX_QUEUED + 5) == 5
    long, short = answers.at_once[MAX_RUNNING : -MAX_RUNNING - MAX_BURST], answers.at_once[-MAX_BURST:]
    assert len(answers.at_once) == MAX_RUNNING + MAX_QUEUED
    assert set(long) <= set(range(1, MAX_RUNNING))  # the first ones end while others begin
    assert set(long[MAX_RUNNING:]) == {1}
    assert max(short) == MAX_RUNNING


async def test_others_do_not_wait_for_a_long_queue() -> None:
    answers = Answers()
    front = RunningRequests(answers)
    flood = asyncio.create_task(send_many(front, MAX_RUNNING + MAX_QUEUED))
    await asyncio.sleep(REQUEST_SECONDS)
    await front(scope("10.0.0.2"), None, None)
    assert not flood.done()
    await flood


async def test_request_is_cancelled_just_before_its_turn() -> None:
    leave = asyncio.Event()

    async def answer(*_asgi: Any) -> None:
        await leave.wait()

    front = RunningRequests(answer)
    requests = [asyncio.create_task(send_many(front, 1)) for _ in range(MAX_RUNNING + 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leave.set()  # those that run are awake before the cancelled one
    requests[MAX_RUNNING].cancel()
    results = await asyncio.wait_for(asyncio.gather(*requests, return_exceptions=True), 5)
    assert [one for one in results if one != 0] == [results[MAX_RUNNING]]
    assert isinstance(results[MAX_RUNNING], asyncio.CancelledError)
    assert front._lanes == {}


async def test_cancelled_requests_leave_their_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_PAUSE_SECONDS", 0.01)
    answers = Answers()
    front = RunningRequests(answers)
    flood = [asyncio.create_task(send_many(front, 1)) for _ in range(MAX_RUNNING + MAX_QUEUED)]
    await asyncio.sleep(REQUEST_SECONDS / 2)
    for task in flood[::2]:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    assert await asyncio.wait_for(send_many(front, MAX_RUNNING), 5) == 0
    assert answers.at_once[-1] == MAX_RUNNING


async def test_long_queue_waits_for_the_requests_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_PAUSE_SECONDS", 0.001)
    now, beside = set[str](), list[str]()

    async def answer(scope: dict[str, Any], *_rest: Any) -> None:
        caller = scope["client"][0]
        if "10.0.0.2" in now:
            beside.append(caller)
        now.add(caller)
        await asyncio.sleep(20 * REQUEST_SECONDS if caller == "10.0.0.2" else REQUEST_SECONDS)
        now.discard(caller)

    front = RunningRequests(answer)
    flood = asyncio.create_task(send_many(front, MAX_RUNNING + MAX_QUEUED))
    await asyncio.sleep(4 * REQUEST_SECONDS)  # the first four have left
    await front(scope("10.0.0.2"), None, None)
    assert len(beside) <= 1  # its turn came just before
    assert await asyncio.wait_for(flood, 20) == 0


async def test_long_queue_is_answered_while_requests_of_others_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_YIELD_SECONDS", 2 * REQUEST_SECONDS)

    async def answer(scope: dict[str, Any], *_rest: Any) -> None:
        await asyncio.sleep(60 if scope["client"][0] == "10.0.0.2" else 0)

    front = RunningRequests(answer)
    other = asyncio.create_task(front(scope("10.0.0.2"), None, None))
    await asyncio.sleep(0)
    assert await asyncio.wait_for(send_many(front, MAX_RUNNING + MAX_QUEUED), 20) == 0
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    assert front._lanes == {}
