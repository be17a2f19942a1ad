"""Sockets during impersonation show the view of the impersonated user, and close when it ends."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.base import SessionBase
from django.db import connections
from django.test import Client
from django.urls import reverse
from tests.apps.access_world import impersonate
from tests.support.live_views import add_view
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
def page_with_the_username(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    view = registry.LiveView(lambda user, _params: frozenset({f"user:{user.pk}"}), lambda user, _params: str(user))
    add_view(monkeypatch, "who", (view,))


@pytest.fixture
def client() -> Client:
    alice, ada = (
        accounts.create_user(username=name, password=None, platform_role=role, actor=PLATFORM, now=clock.now())
        for name, role in (("alice", ""), ("ada", "admin"))
    )
    return impersonate(alice, by=ada)


def _end(client: Client) -> None:
    client.post(reverse("accounts:end_impersonation"))


def _expire(_client: Client) -> None:
    ImpersonationSession.objects.update(until=clock.now())


def _admin_and_session(client: Client) -> tuple[User, SessionBase]:
    return User.objects.get(username="ada"), client.session


async def _open(client: Client) -> Socket:
    user, session = await sync_to_async(_admin_and_session)(client)
    socket = Socket(PageConsumer.as_asgi(), "/ws/live/?view=who&since=0", user, session=session)
    await socket.open()
    return socket


@pytest.mark.parametrize("end", [_end, _expire])
async def test_page_shows_the_view_of_the_person_until_the_end(client: Client, end: Callable[..., Any]) -> None:
    page = await _open(client)
    assert (await page.message())["type"] == "behind"
    while "alice" not in (message := await page.message())["html"]:
        assert message["type"] == "aside"
    await sync_to_async(end)(client)
    while (message := await page.message())["type"] == "aside":
        """Skip the bell, which rings because of the impersonation."""
    assert message == {"type": "gone"}
    await page.leave()
    await sync_to_async(connections.close_all)()


async def test_expired_impersonation_opens_nothing(client: Client) -> None:
    await sync_to_async(_expire)(client)
    page = await _open(client)
    assert await page.close_code() == UNKNOWN
    await sync_to_async(connections.close_all)()
