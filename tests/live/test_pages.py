"""Live pages: updates, reconnection, and closing."""

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
from tests.support.live_views import add_view
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
from hekla.live import consumers, registry
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
    add_view(monkeypatch, "counting", (registry.LiveView(_topics, _render),))


@pytest.fixture
def alice() -> User:
    return accounts.create_user(username="alice", password=None, actor=PLATFORM, now=clock.now())


Open = Callable[..., Awaitable[Socket]]


@pytest.fixture
async def open_page(alice: User) -> AsyncIterator[Open]:
    sockets: list[Socket] = []

    async def connect(query: str, user: Any = alice, **scope: Any) -> Socket:
        socket = Socket(PageConsumer.as_asgi(), f"/ws/live/?{query}", user, **scope)
        await socket.open()
        sockets.append(socket)
        return socket

    yield connect
    for socket in sockets:
        await socket.leave()
    await sync_to_async(connections.close_all)()


@sync_to_async
def record_event(subject: str = "job:7") -> int:
    with unit_of_work():
        record(events.TenantCreated(name="x"), subject=subject, actor=PLATFORM, at=clock.now())
    return event_log.last_number()


async def _next_rendering(page: Socket) -> dict[str, Any]:
    """The next rendering of the page itself, without the bell, which is also sent to pages that missed events."""
    while (message := await page.message())["type"] == "aside":
        pass
    return message


async def test_change_is_sent_with_its_number(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    assert (await page.message())["type"] == "hello"
    number = await record_event()
    message = await page.message()
    assert message == {"type": "fragments", "part": 0, "seq": number, "html": '<div id="count" data-live>2</div>'}


async def test_sockets_of_one_person_are_bounded(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "MAX_SOCKETS", 2)
    bob = await sync_to_async(accounts.create_user)(username="bob", password=None, actor=PLATFORM, now=clock.now())
    first, _second, third = [await open_page("view=counting&job=7") for _ in range(3)]
    assert await third.close_code() == consumers.TOO_MANY
    other = await open_page("view=counting&job=7", user=bob)
    assert (await other.message())["type"] == "hello"
    await first.leave()
    again = await open_page("view=counting&job=7")
    assert (await again.message())["type"] == "hello"


async def test_events_before_the_connection_are_caught_up(open_page: Open) -> None:
    rendered_at = await record_event()
    for _ in range(5):
        last = await record_event()
    page = await open_page(f"view=counting&job=7&since={rendered_at}")
    assert await page.message() == {"type": "behind", "events": 5, "parts": 1}
    message = await _next_rendering(page)
    assert (message["seq"], message["html"]) == (last, '<div id="count" data-live>6</div>')


async def test_other_topics_are_not_sent(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    await page.message()
    await record_event("job:8")
    assert await page.receive_nothing(timeout=0.3)


@pytest.mark.parametrize(
    "frame", [{"text": "{"}, {"text": ""}, {"text": "[]"}, {"bytes": b"\xff"}, {"text": "x" * 9999}]
)
async def test_frames_of_the_browser_are_ignored(open_page: Open, frame: dict[str, Any], caplog: Any) -> None:
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    assert (await page.message())["type"] == "hello"
    await page.send_input({"type": "websocket.receive", **frame})
    number = await record_event()
    assert (await page.message())["seq"] == number
    assert not caplog.records


async def test_failed_rendering_is_retried(open_page: Open, monkeypatch) -> None:
    monkeypatch.setattr("hekla.live.renderings._RETRY_AFTER_ERROR_SECONDS", 0.1)
    fails = iter([True])

    def sometimes(user: User, params: registry.Params) -> str:
        if next(fails, False):
            raise ValueError("not this time")
        return _render(user, params)

    add_view(monkeypatch, "counting", (registry.LiveView(_topics, sometimes),))
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    await page.message()
    await record_event()
    assert (await page.message())["html"] == '<div id="count" data-live>2</div>'


async def test_page_is_updated_without_valkey(open_page: Open, monkeypatch) -> None:
    monkeypatch.setattr("hekla.live.wake._valkey", lambda: Redis.from_url("unix:///nowhere.sock"))
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    await page.message()
    await record_event()
    assert (await page.message(timeout=5))["type"] == "fragments"


async def test_hub_reconnects_to_valkey(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    await page.message()
    await sync_to_async(lambda: Redis.from_url(settings.VALKEY_URL).client_kill_filter(_type="pubsub"))()
    await record_event()
    assert (await page.message(timeout=5))["type"] == "fragments"


class _Listener:
    topics = frozenset({"job:7"})

    def notify(self, topics: Collection[str]) -> None:
        """Do nothing."""


async def test_hub_ends_with_its_last_page_during_a_reconnect() -> None:
    valkey, listener = Redis.from_url(settings.VALKEY_URL), _Listener()
    for pauses in range(30):
        hub().join(listener)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await hub().ready()
        await sync_to_async(valkey.client_kill_filter)(_type="pubsub")
        for _ in range(pauses):
            await asyncio.sleep(0)
        hub().leave(listener)
        assert not (await asyncio.wait(tasks, timeout=10))[1]
    await sync_to_async(connections.close_all)()


@pytest.mark.parametrize("query", ["view=counting&job=8", "view=nothing", "", "view=counting"])
async def test_unknown_or_hidden_view_is_closed(open_page: Open, query: str) -> None:
    page = await open_page(query)
    assert await page.close_code() == 4404


async def test_anonymous_user_must_sign_in(open_page: Open) -> None:
    from django.contrib.auth.models import AnonymousUser

    page = await open_page("view=counting&job=7", user=AnonymousUser())
    assert await page.close_code() == 4401


async def test_page_closes_when_access_is_lost(open_page: Open, alice: User, monkeypatch) -> None:
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    await page.message()
    await sync_to_async(User.objects.filter(pk=alice.pk).update)(is_active=False)
    assert await page.message() == {"type": "gone"}


def _signed_in(user: User) -> SessionBase:
    browser = Client()
    browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    browser.get(reverse("accounts:login_sessions"))
    return browser.session


def _change_password(user: User, _session: SessionBase) -> None:
    accounts.change_user(user, {}, password="a-long-walk-home", actor=PLATFORM, now=clock.now())


def _revoke_session(user: User, _session: SessionBase) -> None:
    visits.end(user, LoginSession.objects.get(user=user).pk, now=clock.now())


def _sign_out(_user: User, session: SessionBase) -> None:
    session.flush()


async def _last_message(page: Socket) -> dict[str, Any]:
    """The last message before the socket closes. Renderings may come first."""
    while (message := await page.message())["type"] == "fragments":
        pass
    return message


@pytest.mark.parametrize("end", [_revoke_session, _sign_out, _change_password])
@pytest.mark.parametrize("is_busy", [False, True])
async def test_end_of_a_session_closes_its_sockets(
    open_page: Open, alice: User, end: Callable[[User, SessionBase], None], is_busy: bool, monkeypatch
) -> None:
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    session = await sync_to_async(_signed_in)(alice)
    page = await open_page(f"view=counting&job=7&since={await record_event()}", session=session)
    assert (await page.message())["type"] == "hello"
    await sync_to_async(end)(alice, session)
    if is_busy:
        await record_event()
    assert await _last_message(page) == {"type": "gone"}


async def test_many_changes_are_few_messages(open_page: Open) -> None:
    page = await open_page(f"view=counting&job=7&since={await record_event()}")
    await page.message()
    for _ in range(50):
        last = await record_event()
    received = 0
    while True:
        message = await page.message(timeout=5)
        received += 1
        if message["seq"] == last:
            break
    assert message["html"] == '<div id="count" data-live>51</div>'
    assert received < 50
