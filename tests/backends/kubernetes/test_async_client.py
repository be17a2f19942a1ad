"""The async client: a limited number of concurrent request pipelines, none of them after its caller is stopped."""

import asyncio
from collections.abc import Iterator

import pytest

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import async_client as module
from hekla.backends.kubernetes.access import from_key
from hekla.backends.kubernetes.async_client import MAX_PIPELINES, AsyncClient
from hekla.backends.kubernetes.keys import ClusterKey


@pytest.fixture
def client() -> Iterator[AsyncClient]:
    async_client = AsyncClient(from_key(ClusterKey("https://127.0.0.1:1")))
    yield async_client
    async_client.close()


def no_heartbeat() -> None:
    pass


class Stopped(Exception):
    pass


def test_each_item_is_yielded_with_its_error(client: AsyncClient) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number % 3 == 0:
            raise BackendError(str(number))

    results = {number: error and str(error) for number, error in client.run_each(work, range(100), no_heartbeat)}
    assert results == {number: None if number % 3 else str(number) for number in range(100)}


def test_pipelines_are_concurrent_up_to_the_limit(client: AsyncClient) -> None:
    concurrent, highest = 0, 0

    async def work(_number: int) -> None:
        nonlocal concurrent, highest
        concurrent += 1
        highest = max(highest, concurrent)
        await asyncio.sleep(0.001)
        concurrent -= 1

    assert len(list(client.run_each(work, range(5 * MAX_PIPELINES), no_heartbeat))) == 5 * MAX_PIPELINES
    assert highest == MAX_PIPELINES


def test_items_are_consumed_lazily(client: AsyncClient) -> None:
    consumed: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            consumed.append(number)
            yield number

    async def work(_number: int) -> None:
        await asyncio.sleep(0)

    for _result in client.run_each(work, items(), no_heartbeat):
        break
    assert len(consumed) <= 2 * MAX_PIPELINES


@pytest.mark.parametrize("limit", [1, MAX_PIPELINES, 3 * MAX_PIPELINES])
def test_stopped_run_starts_no_more_pipelines_and_continues_none(client: AsyncClient, limit: int) -> None:
    started: list[int] = []
    written: list[int] = []

    async def work(number: int) -> None:
        started.append(number)
        await asyncio.sleep(0.005)
        written.append(number)

    def heartbeat() -> None:
        if len(started) >= limit:
            raise Stopped

    with pytest.raises(Stopped):
        list(client.run_each(work, range(1000), heartbeat))
    then = len(written)
    list(client.run_each(asyncio.sleep, [0.05], no_heartbeat))  # the loop continues; the cancelled pipelines do not
    assert len(written) == then
    assert len(started) <= limit + 2 * MAX_PIPELINES


def test_checkpoint_waits_for_the_next_heartbeat(client: AsyncClient) -> None:
    steps: list[str] = []

    async def work(number: int) -> None:
        steps.append(f"made {number}")
        await client.checkpoint()
        steps.append(f"bound {number}")

    list(client.run_each(work, range(2), lambda: steps.append("asked")))
    assert steps.index("asked", 1) < steps.index("bound 0")
    assert sorted(step for step in steps if step != "asked") == ["bound 0", "bound 1", "made 0", "made 1"]


def test_pipeline_stops_at_its_checkpoint_if_the_heartbeat_raises(client: AsyncClient) -> None:
    steps: list[str] = []

    async def work(_number: int) -> None:
        steps.append("made")
        await client.checkpoint()
        steps.append("bound")

    def heartbeat() -> None:
        if steps:
            raise Stopped

    with pytest.raises(Stopped):
        list(client.run_each(work, range(100), heartbeat))
    assert set(steps) == {"made"}
    assert list(client.run_each(asyncio.sleep, [0.01], no_heartbeat)) == [(0.01, None)]
    assert set(steps) == {"made"}


def test_heartbeat_continues_while_the_server_is_silent(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEARTBEAT_SECONDS", 0.01)
    beats = 0

    def heartbeat() -> None:
        nonlocal beats
        beats += 1
        if beats == 5:
            raise Stopped

    async def work(_number: int) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(Stopped):
        list(client.run_each(work, [1], heartbeat))


def test_unreachable_server_is_reported(client: AsyncClient) -> None:
    async def work(path: str) -> None:
        await client.create(path, {})

    ((_path, error),) = client.run_each(work, ["/api/v1/namespaces/x/pods"], no_heartbeat)
    assert "The API server does not answer" in str(error)


def test_first_error_ends_run_all(client: AsyncClient) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            raise BackendError("No")

    with pytest.raises(BackendError, match="No"):
        client.run_all(work, range(1000))


def test_client_can_be_closed_twice_and_unused(client: AsyncClient) -> None:
    client.close()
    client.close()


def test_run_completes_if_the_client_is_closed_meanwhile(client: AsyncClient) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            client.close()

    assert len(list(client.run_each(work, range(3 * MAX_PIPELINES), no_heartbeat))) == 3 * MAX_PIPELINES
    assert client._loop is None
