"""An open page: what it hears, how it comes back, and when it is told to go."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.db import connections
from django.test import Client
from django.urls import reverse
from redis import Redis
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM, record, unit_of_work
from hekla.apps.login_sessions import services as visits
from hekla.apps.login_sessions.models import LoginSession
from hekla.domain import events
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.live import registry
from hekla.live.consumers import PageConsumer
from hekla.live.hub import hub

pytestmark = pytest.mark.django_db(transaction=True)


def _render(_user: User, _params: registry.Params) -> str:
    return f'<div id="count" data-live>{LoggedEvent.objects.filter(topics__contains=["job:7"]).count()}</div>'


def _topics(user: User, params: registry.Params) -> frozenset[str]:
    if params.get("job") != "7" or not user.is_active:
        raise NotFound("Unknown job.")
    return frozenset({"job:7"})


@pytest.fixture(autouse=True)
def _counting_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._views, "counting", (registry.LiveView(_topics, _render),))


@pytest.fixture
def alice() -> User:
    return accounts.create_user(username="alice", password=None, actor=PLATFORM, now=clock.now())


Open = Callable[..., Awaitable[Socket]]


@pytest.fixture
async def open_page(alice: User) -> AsyncIterator[Open]:
    opened: list[Socket] = []

    async def connect(query: str, user: Any = alice, **scope: Any) -> Socket:
        socket = Socket(PageConsumer.as_asgi(), f"/ws/live/?{query}", user, **scope)
        await socket.open()
        opened.append(socket)
        return socket

    yield connect
    for socket in opened:
        await socket.leave()
    await sync_to_async(connections.close_all)()


@sync_to_async
def happen(subject: str = "job:7") -> int:
    with unit_of_work():
        record(events.TenantCreated(name="x"), subject=subject, actor=PLATFORM, at=clock.now())
    return event_log.last_number()


async def _fragments(page: Socket) -> dict[str, Any]:
    """The next rendering of the page itself; the bell beside it is sent along to who was away."""
    while (message := await page.message())["type"] == "aside":
        pass
    return message


async def test_a_change_is_sent_with_its_number(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    assert (await page.message())["type"] == "hello"
    number = await happen()
    message = await page.message()
    assert message == {"type": "fragments", "part": 0, "seq": number, "html": '<div id="count" data-live>2</div>'}


async def test_what_happened_between_rendering_and_connecting_is_made_up_for(open_page: Open) -> None:
    rendered_at = await happen()
    for _ in range(5):
        last = await happen()
    page = await open_page(f"view=counting&job=7&since={rendered_at}")
    assert await page.message() == {"type": "behind", "events": 5, "parts": 1}
    message = await _fragments(page)
    assert (message["seq"], message["html"]) == (last, '<div id="count" data-live>6</div>')


async def test_what_concerns_others_is_not_sent(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    await page.message()
    await happen("job:8")
    assert await page.receive_nothing(timeout=0.3)


async def test_a_rendering_that_fails_is_tried_again_though_nothing_else_happens(open_page: Open, monkeypatch) -> None:
    monkeypatch.setattr("hekla.live.renderings._RETRY_AFTER_ERROR_SECONDS", 0.1)
    fails = iter([True])

    def sometimes(user: User, params: registry.Params) -> str:
        if next(fails, False):
            raise ValueError("not this time")
        return _render(user, params)

    monkeypatch.setitem(registry._views, "counting", (registry.LiveView(_topics, sometimes),))
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    await page.message()
    await happen()
    assert (await page.message())["html"] == '<div id="count" data-live>2</div>'


async def test_without_wake_ups_the_page_still_hears_within_a_moment(open_page: Open, monkeypatch) -> None:
    monkeypatch.setattr("hekla.live.wake._valkey", lambda: Redis.from_url("unix:///nowhere.sock"))
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    await page.message()
    await happen()
    assert (await page.message(timeout=5))["type"] == "fragments"


async def test_the_hub_survives_a_valkey_that_drops_every_connection(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    await page.message()
    await sync_to_async(lambda: Redis.from_url(settings.VALKEY_URL).client_kill_filter(_type="pubsub"))()
    await happen()
    assert (await page.message(timeout=5))["type"] == "fragments"


class _Listener:
    topics = frozenset({"job:7"})

    def notify(self, topics: Collection[str]) -> None:
        """Nothing is done about it."""


async def test_the_hub_ends_with_its_last_page_even_as_valkey_drops_its_connection() -> None:
    valkey, listener = Redis.from_url(settings.VALKEY_URL), _Listener()
    for turns in range(30):
        hub().join(listener)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await hub().ready()
        await sync_to_async(valkey.client_kill_filter)(_type="pubsub")
        for _ in range(turns):
            await asyncio.sleep(0)
        hub().leave(listener)
        assert not (await asyncio.wait(tasks, timeout=10))[1]
    await sync_to_async(connections.close_all)()


@pytest.mark.parametrize("query", ["view=counting&job=8", "view=nothing", "", "view=counting"])
async def test_what_does_not_exist_for_one_is_closed(open_page: Open, query: str) -> None:
    page = await open_page(query)
    assert await page.close_code() == 4404


async def test_strangers_are_asked_to_sign_in(open_page: Open) -> None:
    from django.contrib.auth.models import AnonymousUser

    page = await open_page("view=counting&job=7", user=AnonymousUser())
    assert await page.close_code() == 4401


async def test_who_loses_the_right_is_told_to_go(open_page: Open, alice: User, monkeypatch) -> None:
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    await page.message()
    await sync_to_async(User.objects.filter(pk=alice.pk).update)(is_active=False)
    assert await page.message() == {"type": "gone"}


def _signed_in(user: User) -> SessionBase:
    browser = Client()
    browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    browser.get(reverse("accounts:login_sessions"))
    return browser.session


def _new_password(user: User, _session: SessionBase) -> None:
    accounts.change_user(user, {}, password="a-long-walk-home", actor=PLATFORM, now=clock.now())


def _ended(user: User, _session: SessionBase) -> None:
    visits.end(user, LoginSession.objects.get(user=user).pk, now=clock.now())


def _signed_out(_user: User, session: SessionBase) -> None:
    session.flush()


async def _last_message(page: Socket) -> dict[str, Any]:
    """What comes last before the socket is closed: the page hears of what happens as long as it may."""
    while (message := await page.message())["type"] == "fragments":
        pass
    return message


@pytest.mark.parametrize("happens", [_ended, _signed_out, _new_password])
@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_session_that_ends_takes_its_sockets_along(
    open_page: Open, alice: User, happens: Callable[[User, SessionBase], None], is_busy: bool, monkeypatch
) -> None:
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    session = await sync_to_async(_signed_in)(alice)
    page = await open_page(f"view=counting&job=7&since={await happen()}", session=session)
    assert (await page.message())["type"] == "hello"
    await sync_to_async(happens)(alice, session)
    if is_busy:
        await happen()
    assert await _last_message(page) == {"type": "gone"}


async def test_many_changes_at_once_are_few_messages(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await happen()}")
    await page.message()
    for _ in range(50):
        last = await happen()
    received = 0
    while True:
        message = await page.message(timeout=5)
        received += 1
        if message["seq"] == last:
            break
    assert message["html"] == '<div id="count" data-live>51</div>'
    assert received < 50
