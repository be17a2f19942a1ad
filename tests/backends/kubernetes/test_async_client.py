"""Many pipelines of requests go side by side, no more than there is room for, and none after their owner is stopped."""

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
    opened = AsyncClient(from_key(ClusterKey("https://127.0.0.1:1")))
    yield opened
    opened.close()


def nothing() -> None:
    pass


class Stopped(Exception):
    pass


def test_all_is_done_and_what_went_wrong_is_told_with_its_item(client: AsyncClient) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number % 3 == 0:
            raise BackendError(str(number))

    told = {number: error and str(error) for number, error in client.run_each(work, range(100), nothing)}
    assert told == {number: None if number % 3 else str(number) for number in range(100)}


def test_many_are_under_way_at_once_and_no_more_than_there_is_room_for(client: AsyncClient) -> None:
    under_way, most = 0, 0

    async def work(_number: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1

    assert len(list(client.run_each(work, range(5 * MAX_PIPELINES), nothing))) == 5 * MAX_PIPELINES
    assert most == MAX_PIPELINES


def test_an_item_is_asked_for_when_its_time_comes(client: AsyncClient) -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            asked.append(number)
            yield number

    async def work(_number: int) -> None:
        await asyncio.sleep(0)

    for _told in client.run_each(work, items(), nothing):
        break
    assert len(asked) <= 2 * MAX_PIPELINES


@pytest.mark.parametrize("begun", [1, MAX_PIPELINES, 3 * MAX_PIPELINES])
def test_who_is_stopped_meanwhile_begins_nothing_more_and_goes_on_with_nothing(client: AsyncClient, begun: int) -> None:
    entered: list[int] = []
    written: list[int] = []

    async def work(number: int) -> None:
        entered.append(number)
        await asyncio.sleep(0.005)
        written.append(number)

    def heartbeat() -> None:
        if len(entered) >= begun:
            raise Stopped

    with pytest.raises(Stopped):
        list(client.run_each(work, range(1000), heartbeat))
    then = len(written)
    list(client.run_each(asyncio.sleep, [0.05], nothing))  # the loop goes on; what was cut off does not
    assert len(written) == then
    assert len(entered) <= begun + 2 * MAX_PIPELINES


def test_a_pipeline_passes_a_checkpoint_after_the_next_heartbeat(client: AsyncClient) -> None:
    steps: list[str] = []

    async def work(number: int) -> None:
        steps.append(f"made {number}")
        await client.checkpoint()
        steps.append(f"bound {number}")

    list(client.run_each(work, range(2), lambda: steps.append("asked")))
    assert steps.index("asked", 1) < steps.index("bound 0")
    assert sorted(step for step in steps if step != "asked") == ["bound 0", "bound 1", "made 0", "made 1"]


def test_a_pipeline_whose_owner_objects_goes_no_further(client: AsyncClient) -> None:
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
    assert list(client.run_each(asyncio.sleep, [0.01], nothing)) == [(0.01, None)]
    assert set(steps) == {"made"}


def test_the_heartbeat_goes_on_while_a_server_is_silent(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEARTBEAT_SECONDS", 0.01)
    looks = 0

    def heartbeat() -> None:
        nonlocal looks
        looks += 1
        if looks == 5:
            raise Stopped

    async def work(_number: int) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(Stopped):
        list(client.run_each(work, [1], heartbeat))


def test_a_server_that_is_not_there_is_told_as_such(client: AsyncClient) -> None:
    async def work(path: str) -> None:
        await client.create(path, {})

    ((_path, error),) = client.run_each(work, ["/api/v1/namespaces/x/pods"], nothing)
    assert "The API server does not answer" in str(error)


def test_the_first_error_ends_what_is_done_for_all(client: AsyncClient) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            raise BackendError("No")

    with pytest.raises(BackendError, match="No"):
        client.run_all(work, range(1000))


def test_it_can_be_closed_twice_and_before_it_was_used(client: AsyncClient) -> None:
    client.close()
    client.close()


def test_who_uses_it_while_it_is_closed_goes_on_to_the_end(client: AsyncClient) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            client.close()

    assert len(list(client.run_each(work, range(3 * MAX_PIPELINES), nothing))) == 3 * MAX_PIPELINES
    assert client._loop is None
