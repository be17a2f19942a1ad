"""Many chains of requests go side by side, no more than there is room for, and none after their owner is stopped."""

import asyncio
import ssl
from collections.abc import Iterator

import pytest

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import flight as module
from hekla.backends.kubernetes.access import Access
from hekla.backends.kubernetes.flight import MAX_CHAINS, Flight


@pytest.fixture
def flight() -> Iterator[Flight]:
    opened = Flight(Access("https://127.0.0.1:1", ssl.create_default_context()))
    yield opened
    opened.close()


def nothing() -> None:
    pass


class Stopped(Exception):
    pass


def test_all_is_done_and_what_went_wrong_is_told_with_its_item(flight: Flight) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number % 3 == 0:
            raise BackendError(str(number))

    told = {number: error and str(error) for number, error in flight.each(work, range(100), nothing)}
    assert told == {number: None if number % 3 else str(number) for number in range(100)}


def test_many_are_under_way_at_once_and_no_more_than_there_is_room_for(flight: Flight) -> None:
    under_way, most = 0, 0

    async def work(_number: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1

    assert len(list(flight.each(work, range(5 * MAX_CHAINS), nothing))) == 5 * MAX_CHAINS
    assert most == MAX_CHAINS


def test_an_item_is_asked_for_when_its_time_comes(flight: Flight) -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            asked.append(number)
            yield number

    async def work(_number: int) -> None:
        await asyncio.sleep(0)

    for _told in flight.each(work, items(), nothing):
        break
    assert len(asked) <= 2 * MAX_CHAINS


@pytest.mark.parametrize("begun", [1, MAX_CHAINS, 3 * MAX_CHAINS])
def test_who_is_stopped_meanwhile_begins_nothing_more_and_goes_on_with_nothing(flight: Flight, begun: int) -> None:
    entered: list[int] = []
    written: list[int] = []

    async def work(number: int) -> None:
        entered.append(number)
        await asyncio.sleep(0.005)
        written.append(number)

    def meanwhile() -> None:
        if len(entered) >= begun:
            raise Stopped

    with pytest.raises(Stopped):
        list(flight.each(work, range(1000), meanwhile))
    then = len(written)
    list(flight.each(asyncio.sleep, [0.05], nothing))  # the loop goes on; what was cut off does not
    assert len(written) == then
    assert len(entered) <= begun + 2 * MAX_CHAINS


def test_a_chain_that_asks_for_leave_goes_on_once_its_owner_was_asked(flight: Flight) -> None:
    steps: list[str] = []

    async def work(number: int) -> None:
        steps.append(f"made {number}")
        await flight.leave()
        steps.append(f"bound {number}")

    list(flight.each(work, range(2), lambda: steps.append("asked")))
    assert steps.index("asked", 1) < steps.index("bound 0")
    assert sorted(step for step in steps if step != "asked") == ["bound 0", "bound 1", "made 0", "made 1"]


def test_a_chain_whose_owner_objects_goes_no_further(flight: Flight) -> None:
    steps: list[str] = []

    async def work(_number: int) -> None:
        steps.append("made")
        await flight.leave()
        steps.append("bound")

    def meanwhile() -> None:
        if steps:
            raise Stopped

    with pytest.raises(Stopped):
        list(flight.each(work, range(100), meanwhile))
    assert set(steps) == {"made"}
    assert list(flight.each(asyncio.sleep, [0.01], nothing)) == [(0.01, None)]
    assert set(steps) == {"made"}


def test_its_owner_is_asked_also_while_a_server_says_nothing(flight: Flight, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_UP_SECONDS", 0.01)
    looks = 0

    def meanwhile() -> None:
        nonlocal looks
        looks += 1
        if looks == 5:
            raise Stopped

    async def work(_number: int) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(Stopped):
        list(flight.each(work, [1], meanwhile))


def test_a_server_that_is_not_there_is_told_as_such(flight: Flight) -> None:
    async def work(path: str) -> None:
        await flight.create(path, {})

    ((_path, error),) = flight.each(work, ["/api/v1/namespaces/x/pods"], nothing)
    assert "The API server does not answer" in str(error)


def test_the_first_error_ends_what_is_done_for_all(flight: Flight) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            raise BackendError("No")

    with pytest.raises(BackendError, match="No"):
        flight.all(work, range(1000))


def test_it_can_be_closed_twice_and_before_it_was_used(flight: Flight) -> None:
    flight.close()
    flight.close()


def test_who_uses_it_while_it_is_closed_goes_on_to_the_end(flight: Flight) -> None:
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            flight.close()

    assert len(list(flight.each(work, range(3 * MAX_CHAINS), nothing))) == 3 * MAX_CHAINS
    assert flight._loop is None
