"""Wrong passwords for one name slow down further attempts from strange addresses, and lock nobody out."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from redis.exceptions import ConnectionError as ValkeyIsAway
from tests.api.openpai import V2
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.signin import slowdown
from hekla.apps.signin.slowdown import FREE_FAILURES, attempt
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

PASSWORD, GUESS = "a-long-walk-home", "guess"
HOME = "192.0.2.7"


@pytest.fixture
def alice(people: People) -> User:
    accounts.change_user(people.alice, {}, password=PASSWORD, actor=PLATFORM, now=clock.now())
    return people.alice


@pytest.fixture
def addresses() -> Any:
    """Strange addresses, each new."""
    return (f"198.51.100.{number}" for number in count(1))


def sign_in(address: str, password: str = GUESS, username: str = "alice") -> Any:
    fields = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address).post(reverse("accounts:sign_in"), fields)


def openpai_sign_in(address: str, password: str = GUESS, username: str = "alice") -> Any:
    fields = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address).post(f"{V2}/authn/basic/login", fields, content_type="application/json")


@pytest.mark.parametrize("username", ["alice", "nobody"])
@pytest.mark.parametrize("door", [sign_in, openpai_sign_in])
def test_guesses_from_many_addresses_have_to_wait(alice: User, addresses: Any, door: Any, username: str) -> None:
    answers = [door(next(addresses), username=username) for _ in range(FREE_FAILURES + 3)]
    assert all(answer.status_code != 429 for answer in answers[: FREE_FAILURES + 1])
    assert [answer.status_code for answer in answers[FREE_FAILURES + 1 :]] == [429, 429]
    assert "Too many wrong passwords" in answers[-1].content.decode()
    late = door(next(addresses), username=username, password=PASSWORD)
    assert late.status_code == 429


def test_guesses_with_a_stolen_session_have_to_wait(alice: User, addresses: Any) -> None:
    browser = Client()
    browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    page = reverse("accounts:prove")
    answers = [browser.post(page, {"password": GUESS}, REMOTE_ADDR=next(addresses)) for _ in range(FREE_FAILURES + 2)]
    assert [answer.status_code for answer in answers] == [200] * (FREE_FAILURES + 1) + [429]
    assert browser.post(page, {"password": PASSWORD}, REMOTE_ADDR=next(addresses)).status_code == 429
    accounts.note_sign_in(alice, method="password", address=HOME, now=clock.now())
    assert browser.post(page, {"password": PASSWORD}, REMOTE_ADDR=HOME).status_code == 302


def test_page_says_when_to_try_again(alice: User, addresses: Any) -> None:
    answers = [sign_in(next(addresses)) for _ in range(FREE_FAILURES + 2)]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 3
    assert "Try again at" in answers[-1].content.decode()


def test_openpai_says_how_long_to_wait(alice: User, addresses: Any) -> None:
    answers = [openpai_sign_in(next(addresses)) for _ in range(FREE_FAILURES + 2)]
    assert answers[-1].json()["code"] == "TooManyRequestsError"
    assert "seconds" in answers[-1].json()["message"]


def test_known_address_is_exempt(alice: User, addresses: Any) -> None:
    assert sign_in(HOME, PASSWORD).status_code == 302
    for _ in range(FREE_FAILURES + 2):
        refused = sign_in(next(addresses))
    assert refused.status_code == 429
    assert sign_in(HOME, PASSWORD).status_code == 302
    assert openpai_sign_in(HOME, PASSWORD).status_code == 200


def test_other_names_are_not_slowed_down(alice: User, addresses: Any) -> None:
    for _ in range(FREE_FAILURES + 2):
        sign_in(next(addresses), username="bob")
    assert sign_in(next(addresses), PASSWORD).status_code == 302


def test_right_passwords_do_not_count(alice: User, addresses: Any) -> None:
    answers = [sign_in(next(addresses), PASSWORD) for _ in range(FREE_FAILURES + 5)]
    assert {answer.status_code for answer in answers} == {302}


def delays(username: str, now: datetime, attempts: int) -> list[int]:
    """The waiting time before each attempt; after it, the attempt passes."""
    found = []
    for number in range(attempts):
        wait = attempt(username, f"198.51.100.{number}", now=now)
        found.append(round(wait.total_seconds()))
        if wait:
            now += wait
            cache.delete(f"{slowdown._key(username)}:until")  # as Valkey does by then
            assert not attempt(username, HOME, now=now)
    return found


def test_delay_doubles_up_to_a_limit(people: People) -> None:
    waits = delays("alice", clock.now(), FREE_FAILURES + 14)
    assert waits == [0] * (FREE_FAILURES + 1) + [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]


def test_parallel_attempts_pass_one_at_a_time(people: People) -> None:
    now = clock.now()
    for number in range(FREE_FAILURES):
        assert not attempt("alice", f"198.51.100.{number}", now=now)
    name = slowdown._key("alice")
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(lambda _: not slowdown._pass(name, now), range(40)))
    assert sum(passed) == 1


@pytest.mark.parametrize(
    ("known", "address", "is_exempt"),
    [
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
        ("2001:db8:1:2::5", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::5", "2001:db8:1:3::5", False),
        ("", "", False),
    ],
)
def test_known_network(alice: User, known: str, address: str, is_exempt: bool) -> None:
    now = clock.now()
    accounts.note_sign_in(alice, method="password", address=known, now=now)
    assert slowdown._is_known("alice", address, now) is is_exempt
    assert not slowdown._is_known("alice", address, now + timedelta(days=31))


def test_lost_cache_locks_nobody_out(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any, **_options: Any) -> None:
        raise ValkeyIsAway

    for name in ("get", "add", "incr", "decr"):
        monkeypatch.setattr(cache, name, fail)
    assert sign_in(HOME, PASSWORD).status_code == 302
