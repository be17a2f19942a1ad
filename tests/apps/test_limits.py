"""Limits on sign-in attempts, with the time of the next one."""

from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from redis.exceptions import ConnectionError as ValkeyIsAway
from tests.apps.conftest import People

from hekla.lib import clock

GUESS = {"username": "alice", "password": "guess"}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """A fixed clock, so that no window ends during a test."""
    present = clock.now().replace(second=20, microsecond=0)
    monkeypatch.setattr(clock, "now", lambda: present)
    return present


def test_repeated_wrong_passwords_lock_name_and_address(people: People, settings, now: datetime) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    people.alice.set_password("a-long-walk-home")
    people.alice.save()
    address = reverse("accounts:sign_in")
    answers = [Client(REMOTE_ADDR="192.0.2.1").post(address, GUESS) for _ in range(3)]
    right = GUESS | {"password": "a-long-walk-home"}
    late = Client(REMOTE_ADDR="192.0.2.1").post(address, right)
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert late.status_code == 429
    assert late.headers["Retry-After"] == str(15 * 60 + 1)
    assert (now + timedelta(seconds=15 * 60 + 1)).strftime("%H:%M") in late.content.decode()
    assert Client(REMOTE_ADDR="192.0.2.2").post(address, right).status_code == 302


@pytest.mark.parametrize(
    ("name", "arguments", "method"),
    [
        ("accounts:sign_in", [], "post"),
        ("accounts:second_step", [], "post"),
        ("accounts:use_link", ["guess"], "post"),
        ("invitations:sign_up", ["guess"], "get"),
    ],
)
def test_attempts_per_minute_are_limited(
    people: People, settings, now: datetime, name: str, arguments: list[str], method: str
) -> None:
    settings.TRIES_A_MINUTE = 3
    request = getattr(Client(REMOTE_ADDR="192.0.2.3"), method)
    answers = [request(reverse(name, args=arguments), {"username": "nobody", "password": "x"}) for _ in range(4)]
    assert [answer.status_code == 429 for answer in answers] == [False, False, False, True]
    assert answers[-1].headers["Retry-After"] == "41"
    assert "Try again at" in answers[-1].content.decode()
    other = getattr(Client(REMOTE_ADDR="192.0.2.9"), method)
    assert other(reverse(name, args=arguments)).status_code != 429


def test_unavailable_cache_locks_nobody_out(people: People, settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise ValkeyIsAway

    settings.TRIES_A_MINUTE = 0
    monkeypatch.setattr(cache, "count", away)
    assert Client().post(reverse("accounts:use_link", args=["guess"])).status_code == 404
