"""Login sessions: the list of browsers, and revocation."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.login_sessions import selectors, services
from hekla.apps.login_sessions.models import LoginSession
from hekla.domain.errors import Forbidden, NotFound
from hekla.lib import clock
from hekla.pages.login_sessions import browsers

__all__ = ["db", "people", "shared_people"]

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
PASSWORD = "a-long-walk-home"
As = Callable[[User], Client]


@pytest.fixture
def browsers_of_alice(people: People, as_: As) -> list[Client]:
    """Alice in three browsers."""
    found = [as_(people.alice) for _ in range(3)]
    for client in found:
        assert client.get("/", headers={"user-agent": FIREFOX}).status_code == 200
    return found


def sessions(user: User) -> list[LoginSession]:
    return list(selectors.of(user, now=clock.now()))


def is_valid(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_list_names_browsers_and_marks_the_current_one(people: People, browsers_of_alice: list[Client]) -> None:
    page = browsers_of_alice[0].get(reverse("accounts:login_sessions")).content.decode()
    assert page.count("Firefox, Linux") == 3
    assert page.count("this session") == 1
    assert "127.0.0.1" in page


def test_user_revokes_one_session(people: People, browsers_of_alice: list[Client]) -> None:
    second_session = next(
        v for v in sessions(people.alice) if v.session_key == browsers_of_alice[1].session.session_key
    )
    browsers_of_alice[0].post(reverse("accounts:end_login_session", args=[second_session.pk]))
    assert [is_valid(client) for client in browsers_of_alice] == [True, False, True]
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().payload["browsers"]) == (
        "OtherSessionsRevoked",
        1,
    )


def test_user_revokes_all_other_sessions(people: People, browsers_of_alice: list[Client]) -> None:
    browsers_of_alice[0].post(reverse("accounts:end_other_login_sessions"))
    assert [is_valid(client) for client in browsers_of_alice] == [True, False, False]
    assert len(sessions(people.alice)) == LoginSession.objects.filter(user=people.alice).count() == 1


def test_user_cannot_revoke_sessions_of_others(people: People, browsers_of_alice: list[Client]) -> None:
    with pytest.raises(NotFound):
        services.end(people.bob, sessions(people.alice)[0].pk, now=clock.now())
    with pytest.raises(Forbidden):
        services.end_all(people.alice, by=people.bob, now=clock.now())


def test_platform_admin_revokes_sessions(people: People, browsers_of_alice: list[Client], as_: As) -> None:
    as_(people.ada).post(reverse("accounts:end_login_sessions_of", args=[people.alice.pk]))
    assert [is_valid(client) for client in browsers_of_alice] == [False] * 3
    assert LoggedEvent.objects.last().actor_name == "ada"


def test_new_password_revokes_other_sessions(people: People, browsers_of_alice: list[Client]) -> None:
    before = [client.session.session_key for client in browsers_of_alice]
    browsers_of_alice[0].post(reverse("accounts:profile"), {"display_name": "Alice", "password": PASSWORD})
    people.alice.refresh_from_db()
    assert [visit.session_key for visit in sessions(people.alice)] == [browsers_of_alice[0].session.session_key]
    assert not any(selectors.session_data(key, people.alice, now=clock.now()) for key in before)
    assert [is_valid(client) for client in browsers_of_alice] == [True, False, False]


def test_signed_out_session_is_not_listed(people: People, browsers_of_alice: list[Client]) -> None:
    browsers_of_alice[0].post(reverse("accounts:sign_out"))
    assert len(sessions(people.alice)) == 2


def test_expired_session_is_not_valid(people: People, browsers_of_alice: list[Client]) -> None:
    key = browsers_of_alice[0].session.session_key
    assert selectors.session_data(key, people.alice, now=clock.now())
    assert not selectors.session_data(key, people.bob, now=clock.now())
    Session.objects.filter(session_key=key).update(expire_date=clock.now())
    assert not selectors.session_data(key, people.alice, now=clock.now())


def test_last_use_is_recorded_once_a_minute(people: People, browsers_of_alice: list[Client], monkeypatch) -> None:
    first = LoginSession.objects.order_by("pk").first()
    browsers_of_alice[0].get("/")
    assert LoginSession.objects.get(pk=first.pk).last_active_at == first.last_active_at
    later = clock.now() + timedelta(minutes=2)
    monkeypatch.setattr(clock, "now", lambda: later)
    browsers_of_alice[0].get("/")
    assert LoginSession.objects.get(pk=first.pk).last_active_at == later
    assert LoginSession.objects.count() == 3


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox, Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge, Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari, iPhone"),
        ("python-httpx2/0.28", "Python"),
        ("<script>", ""),
    ],
)
def test_names_of_browsers(user_agent: str, name: str) -> None:
    assert browsers.name(user_agent) == name


def test_session_ends_a_fixed_time_after_the_sign_in(people: People, as_: As, settings: LazySettings) -> None:
    settings.SESSION_HOURS = 12
    client = as_(people.alice)
    assert is_valid(client)
    end = Session.objects.get().expire_date
    assert timedelta(hours=11.9) < end - clock.now() <= timedelta(hours=12)
    session = client.session
    session["login_session"] = {}  # the next request writes the session, as each minute
    session.save()
    assert is_valid(client)
    assert client.session["login_session"]
    assert Session.objects.get().expire_date == end


def test_expired_session_is_over_everywhere(people: People, as_: As) -> None:
    client = as_(people.alice)
    assert is_valid(client)
    sessions_now = {client.session.session_key or "": people.alice.pk}
    after = clock.now() + timedelta(days=14, seconds=1)
    assert selectors.session_fingerprints(sessions_now, known={}, now=clock.now())
    assert not selectors.session_fingerprints(sessions_now, known={}, now=after)  # sockets ask this every two seconds
    assert not selectors.of(people.alice, now=after)


def test_new_sign_in_starts_a_new_lifetime(people: People, as_: As, settings: LazySettings) -> None:
    client = as_(people.alice)
    settings.SESSION_HOURS = 1
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert is_valid(client)
    assert Session.objects.get(pk=client.session.session_key).expire_date <= clock.now() + timedelta(hours=1)
