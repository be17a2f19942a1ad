"""The sockets of somebody who acts for another: theirs is the other's view, and it goes when the acting does."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.base import SessionBase
from django.db import connections
from django.test import Client
from django.urls import reverse
from tests.apps.access_world import acting_for
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.lib import clock
from hekla.live import registry
from hekla.live.consumers import UNKNOWN, PageConsumer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _page_that_says_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    view = registry.LiveView(lambda user, _params: frozenset({f"user:{user.pk}"}), lambda user, _params: str(user))
    monkeypatch.setitem(registry._views, "who", (view,))


@pytest.fixture
def client() -> Client:
    alice, ada = (
        accounts.create_user(username=name, password=None, platform_role=role, actor=PLATFORM, now=clock.now())
        for name, role in (("alice", ""), ("ada", "admin"))
    )
    return acting_for(alice, by=ada)


def _end(client: Client) -> None:
    client.post(reverse("accounts:end_impersonation"))


def _late(_client: Client) -> None:
    ImpersonationSession.objects.update(until=clock.now())


def _of(client: Client) -> tuple[User, SessionBase]:
    return User.objects.get(username="ada"), client.session


async def _open(client: Client) -> Socket:
    user, session = await sync_to_async(_of)(client)
    socket = Socket(PageConsumer.as_asgi(), "/ws/live/?view=who&since=0", user, session=session)
    await socket.open()
    return socket


@pytest.mark.parametrize("happens", [_end, _late])
async def test_it_shows_what_the_person_sees_until_it_ends(client: Client, happens: Callable[..., Any]) -> None:
    page = await _open(client)
    assert (await page.message())["type"] == "behind"
    while "alice" not in (told := await page.message())["html"]:
        assert told["type"] == "aside"
    await sync_to_async(happens)(client)
    while (told := await page.message())["type"] == "aside":
        """The bell rings for the person: somebody acted for them."""
    assert told == {"type": "gone"}
    await page.leave()
    await sync_to_async(connections.close_all)()


async def test_one_that_is_over_opens_nothing(client: Client) -> None:
    await sync_to_async(_late)(client)
    page = await _open(client)
    assert await page.close_code() == UNKNOWN
    await sync_to_async(connections.close_all)()
