"""The rule that people must have a second factor holds at every door, also for what was made before the rule."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.routing import URLRouter
from django.conf import LazySettings
from django.db import connections
from django.test import Client
from django.urls import reverse
from tests.api.openpai import V1, V2
from tests.apps.conftest import make_people
from tests.support.authenticator import code_at
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.signin import services
from hekla.apps.signin.models import SecondFactor
from hekla.lib import clock
from hekla.live import routing

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "a-long-walk-home"
BACKEND = "django.contrib.auth.backends.ModelBackend"


class Access:
    """The ways of one person into the console, all made before the rule."""

    def __init__(self, user: User) -> None:
        self.user, self.browser = user, Client()
        self.browser.force_login(user, backend=BACKEND)
        token = accounts.create_token(user, name="t", lifetime=timedelta(days=1), now=clock.now())
        self.program = Client(headers={"Authorization": f"Bearer {token}"})

    def page(self) -> bool:
        return self.browser.get("/").status_code == 200

    def rest_with_session(self) -> bool:
        return self._is_open(self.browser.get("/api/v1/jobs"))

    def rest_with_token(self) -> bool:
        return self._is_open(self.program.get("/api/v1/jobs"))

    def change_with_token(self) -> bool:
        return self._is_open(self.program.post("/api/v1/tokens", {"name": "more", "days": 1}, "application/json"))

    def openpai_with_token(self) -> bool:
        return self.program.get(f"{V2}/users/{self.user.username}").status_code == 200

    def openpai_sign_in(self) -> bool:
        fields = {"username": self.user.username, "password": PASSWORD}
        return Client().post(f"{V1}/authn/basic/login", fields, "application/json").status_code == 200

    def websocket(self) -> bool:
        return async_to_sync(self._connect)()

    async def _connect(self) -> bool:
        socket = Socket(URLRouter(routing.urlpatterns), "/ws/live/?view=jobs", self.user)
        await socket.open()
        is_open = (await socket.receive_output(5))["type"] == "websocket.send"
        if is_open:
            await socket.leave()
        return is_open

    def _is_open(self, answer: Any) -> bool:
        if answer.status_code == 403:
            assert answer.json()["code"] == "second_factor_missing"
        return answer.status_code < 300


DOORS = [
    Access.page, Access.rest_with_session, Access.rest_with_token, Access.change_with_token,
    Access.openpai_with_token, Access.openpai_sign_in, Access.websocket,
]  # fmt: skip


def _add_factor(user: User) -> None:
    now = clock.now()
    services.begin(user, now=now)
    secret = services.secret_of(SecondFactor.objects.get(user=user))
    services.confirm(user, code_at(secret, now), now=now)


@pytest.fixture
def access() -> Access:
    alice = make_people().alice
    accounts.change_user(alice, {}, password=PASSWORD, actor=PLATFORM, now=clock.now())
    return Access(alice)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_is_closed_without_a_required_factor(
    access: Access, settings: LazySettings, door: Callable[[Access], bool]
) -> None:
    assert door(access)
    settings.SECOND_FACTOR_FOR = "everybody"
    assert not door(access)
    settings.SECOND_FACTOR_FOR = "admins"
    assert door(access), "Alice is no admin: the rule is not for her"
    connections.close_all()


@pytest.mark.parametrize("door", [door for door in DOORS if door is not Access.openpai_sign_in])
def test_every_door_opens_again_with_a_factor(
    access: Access, settings: LazySettings, door: Callable[[Access], bool]
) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    _add_factor(access.user)
    assert door(access)
    connections.close_all()


def test_set_up_stays_open(access: Access, settings: LazySettings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    browser = Client()
    browser.post(reverse("accounts:sign_in"), {"username": access.user.username, "password": PASSWORD})
    assert browser.get(reverse("accounts:second_factor")).status_code == 200


def test_open_page_ends_when_an_admin_removes_the_required_factor(
    access: Access, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    monkeypatch.setattr("hekla.live.guard.EVERY_SECONDS", 0.2)
    _add_factor(access.user)
    ada = User.objects.get(username="ada")

    async def ends() -> None:
        socket = Socket(URLRouter(routing.urlpatterns), "/ws/live/?view=jobs", access.user)
        await socket.open()
        assert (await socket.message())["type"] != "gone"
        await sync_to_async(services.reset)(access.user, by=ada, now=clock.now())
        while (await socket.message())["type"] != "gone":
            """Other parts come first."""

    async_to_sync(ends)()
    connections.close_all()
