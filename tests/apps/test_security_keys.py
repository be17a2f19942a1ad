"""Security keys and passkeys as a second factor: what they prove, and what proves nothing."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.support.authenticator import code_at
from tests.support.security_key import SoftwareKey

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.signin import selectors, services
from hekla.apps.signin.models import RecoveryCode, SecondFactor, SecurityKey
from hekla.apps.signin.relying_party import relying_party
from hekla.domain.errors import NotFound, Refused
from hekla.lib import clock

PAGE, STEP = "accounts:second_factor", "accounts:second_step"


@pytest.fixture(autouse=True)
def at_home(settings) -> None:
    settings.PUBLIC_URL = "http://localhost"
    settings.ALLOWED_HOSTS = ["*"]


@pytest.fixture
def now() -> datetime:
    return clock.now()


def browser() -> Client:
    return Client(headers={"host": "localhost"})


def come(user: User) -> Client:
    """A browser of somebody who has come half of the way; all of it, where no second factor is asked for."""
    client = browser()
    client.post(reverse("accounts:use_link", args=[accounts.issue_link(user, now=clock.now())]))
    return client


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def add(client: Client, key: SoftwareKey, name: str = "blue") -> HttpResponse:
    options = client.get(reverse(PAGE)).context["key"].options
    return client.post(reverse("accounts:add_key"), {"name": name, "credential": key.create(options)})


def asked(client: Client) -> str:
    """What the page of the second step asks a key."""
    return client.get(reverse(STEP)).context["key"].options


def send(client: Client, answer: str) -> HttpResponse:
    return client.post(reverse(STEP), {"credential": answer})


def problems(answer: HttpResponse) -> str:
    return str(answer.context["key_form"].errors)


@pytest.fixture
def key(people: People) -> SoftwareKey:
    """One of Alice's."""
    key = SoftwareKey()
    add(come(people.alice), key)
    return key


def test_a_key_alone_is_a_second_factor(people: People) -> None:
    client, key = come(people.alice), SoftwareKey()
    assert signed_in(client)
    told = add(client, key)
    assert len(told.context["codes"].split()) == 10
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().payload) == (
        "SecurityKeyAdded",
        {"name": "blue"},
    )
    client = come(people.alice)
    assert not signed_in(client)
    assert send(client, key.get(asked(client))).headers["Location"] == "/"
    assert signed_in(client)
    client.get(reverse(PAGE))
    assert SecurityKey.objects.get().last_used_at is not None


def test_a_recovery_code_stands_in_for_a_key(people: People) -> None:
    told = add(come(people.alice), SoftwareKey())
    client = come(people.alice)
    wrong = client.post(reverse(STEP), {"code": "123456"})
    assert "Unknown or used recovery code" in str(wrong.context["form"].errors)
    client.post(reverse(STEP), {"code": told.context["codes"].split()[0]})
    assert signed_in(client)


def test_another_page_s_answer_is_refused(people: People, key: SoftwareKey) -> None:
    key.origin = "http://localhost.evil.example"
    client = come(people.alice)
    assert "does not verify" in problems(send(client, key.get(asked(client))))
    assert not signed_in(client)


def test_nor_is_a_key_added_from_there(people: People) -> None:
    answer = add(come(people.alice), SoftwareKey(origin="https://evil.example"))
    assert "Invalid answer" in problems(answer)
    assert not SecurityKey.objects.exists()


def test_an_answer_is_good_once(people: People, key: SoftwareKey) -> None:
    client = come(people.alice)
    answer = key.get(asked(client))
    assert send(client, answer).status_code == 302
    client = come(people.alice)
    assert "sent twice" in problems(send(client, answer))  # nothing was asked yet
    asked(client)
    assert "does not verify" in problems(send(client, answer))  # something else was asked
    assert not signed_in(client)


def test_a_question_ends_with_the_first_answer(people: People, key: SoftwareKey) -> None:
    client = come(people.alice)
    options = asked(client)
    send(client, "{}")
    assert "does not verify" in problems(send(client, key.get(options)))
    assert not signed_in(client)


def test_a_question_is_old_after_five_minutes(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    client, key = come(people.alice), SoftwareKey()
    options, later = client.get(reverse(PAGE)).context["key"].options, clock.now() + timedelta(seconds=301)
    monkeypatch.setattr(clock, "now", lambda: later)
    answer = client.post(reverse("accounts:add_key"), {"name": "late", "credential": key.create(options)})
    assert "more than five minutes" in problems(answer)
    assert not SecurityKey.objects.exists()


@pytest.mark.parametrize("behind", [0, 1, 5])
def test_a_key_that_counts_back_is_refused(people: People, key: SoftwareKey, behind: int) -> None:
    key.count = 10
    client = come(people.alice)
    assert send(client, key.get(asked(client))).status_code == 302
    key.count -= 1 + behind
    client = come(people.alice)
    assert "does not verify" in problems(send(client, key.get(asked(client))))
    assert not signed_in(client)


def test_a_key_proves_its_owner_alone(people: People, key: SoftwareKey) -> None:
    add(come(people.bob), SoftwareKey())
    client = come(people.bob)
    assert "does not verify" in problems(send(client, key.get(asked(client))))
    forged = SoftwareKey(credential_id=bytes(SecurityKey.objects.get(user=people.bob).credential_id))
    assert "does not verify" in problems(send(client, forged.get(asked(client))))
    assert not signed_in(client)


def test_nobody_adds_a_key_that_is_known(people: People, key: SoftwareKey) -> None:
    assert "already registered here" in problems(add(come(people.bob), key))
    assert not selectors.has_second_factor(people.bob)


@pytest.mark.parametrize("nonsense", ["", "{}", "[]", "null", "x", '{"id": 1}', "[" * 9_000, "\0", "é" * 20_000])
def test_nonsense_is_no_answer(people: People, key: SoftwareKey, nonsense: str) -> None:
    client = come(people.alice)
    asked(client)
    assert problems(send(client, nonsense))
    assert not signed_in(client)


def test_after_ten_wrong_answers_neither_key_nor_code_is_taken(people: People, key: SoftwareKey, now: datetime) -> None:
    for _ in range(services.MOST_WRONG):
        with pytest.raises(Refused):
            services.prove_with_key(people.alice, answer="{}", challenge=b"x", now=now)
    with pytest.raises(Refused, match=r"Try again at \d\d:\d\d"):
        services.prove(people.alice, "123456", now=now)
    client = come(people.alice)
    assert "Try again at" in problems(send(client, key.get(asked(client))))
    assert not signed_in(client)


def test_beside_an_app_each_is_enough(people: People, key: SoftwareKey, now: datetime) -> None:
    before = set(RecoveryCode.objects.values_list("digest", flat=True))
    services.begin(people.alice, now=now)
    secret = services.secret_of(SecondFactor.objects.get())
    earlier = now - timedelta(minutes=5)
    assert services.confirm(people.alice, code_at(secret, earlier), now=earlier) == []
    assert set(RecoveryCode.objects.values_list("digest", flat=True)) == before
    services.prove(people.alice, code_at(secret, now), now=now)
    services.remove_key(people.alice, SecurityKey.objects.get().pk, now=now)
    assert selectors.has_second_factor(people.alice)


def test_an_app_that_is_not_confirmed_proves_nothing(people: People, key: SoftwareKey, now: datetime) -> None:
    services.begin(people.alice, now=now)
    with pytest.raises(Refused, match="Unknown or used recovery code"):
        services.prove(people.alice, code_at(services.secret_of(SecondFactor.objects.get()), now), now=now)


def test_the_last_one_stays_where_there_must_be_one(people: People, key: SoftwareKey, settings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    client = come(people.alice)
    send(client, key.get(asked(client)))
    remove = reverse("accounts:remove_key", args=[SecurityKey.objects.get().pk])
    page = client.post(remove, headers={"referer": "http://localhost" + reverse(PAGE)}, follow=True)
    assert "your only second factor" in page.content.decode()
    assert SecurityKey.objects.count() == 1
    add(client, SoftwareKey(), "spare")
    client.post(remove)
    assert [one.name for one in selectors.keys_of(people.alice)] == ["spare"]


def test_the_last_one_goes_with_its_codes_where_none_must_be(people: People, key: SoftwareKey, now: datetime) -> None:
    services.remove_key(people.alice, SecurityKey.objects.get().pk, now=now)
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().payload) == (
        "SecurityKeyRemoved",
        {"name": "blue"},
    )
    assert not selectors.has_second_factor(people.alice)
    assert not RecoveryCode.objects.exists()


def test_somebody_else_s_key_is_not_there(people: People, key: SoftwareKey, now: datetime) -> None:
    with pytest.raises(NotFound):
        services.remove_key(people.bob, SecurityKey.objects.get().pk, now=now)
    answer = come(people.bob).post(reverse("accounts:remove_key", args=[SecurityKey.objects.get().pk]))
    assert answer.status_code == 404


def test_who_must_have_one_may_begin_with_a_key(people: People, settings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    client = come(people.alice)
    assert client.get("/").headers["Location"] == reverse(PAGE)
    add(client, SoftwareKey())
    assert client.get("/").status_code == 200


def test_there_are_at_most_ten(people: People) -> None:
    client = come(people.alice)
    for number in range(services.MOST_KEYS - 1):
        SecurityKey.objects.create(
            user=people.alice, name=str(number), credential_id=bytes([number]), public_key=b"", created_at=clock.now()
        )
    options = client.get(reverse(PAGE)).context["key"].options
    add(client, SoftwareKey())
    assert "maximum number of keys" in client.get(reverse(PAGE)).content.decode()
    answer = client.post(reverse("accounts:add_key"), {"name": "more", "credential": SoftwareKey().create(options)})
    assert "the maximum" in problems(answer)


def test_a_key_proves_it_again_before_something_is_changed(people: People, key: SoftwareKey) -> None:
    client, prove = browser(), reverse("accounts:prove")
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse(PAGE)).headers["Location"].startswith(prove)
    page = client.get(prove, {"next": reverse(PAGE)})
    answer = {"credential": key.get(page.context["key"].options), "next": reverse(PAGE)}
    assert client.post(prove, answer).headers["Location"] == reverse(PAGE)
    assert client.get(reverse(PAGE)).status_code == 200


@pytest.mark.parametrize("name", ["add_key", "remove_key"])
def test_an_unlocked_screen_is_not_enough(people: People, key: SoftwareKey, as_: Callable, name: str) -> None:
    address = reverse(f"accounts:{name}", args=[SecurityKey.objects.get().pk] if name == "remove_key" else [])
    assert as_(people.alice).post(address).headers["Location"].startswith(reverse("accounts:prove"))
    assert SecurityKey.objects.count() == 1


def test_a_platform_admin_ends_keys_that_were_lost(people: People, key: SoftwareKey, now: datetime) -> None:
    services.reset(people.alice, by=people.ada, now=now)
    assert not selectors.has_second_factor(people.alice)
    assert not RecoveryCode.objects.exists()


@pytest.mark.parametrize(
    ("public", "name", "origin"),
    [
        ("http://127.0.0.1:8000", "localhost", "http://localhost:8000"),
        ("http://[::1]:8000/", "localhost", "http://localhost:8000"),
        ("http://localhost:8000", "localhost", "http://localhost:8000"),
        ("https://Hekla.Example/", "hekla.example", "https://hekla.example"),
        ("https://hekla.example:443", "hekla.example", "https://hekla.example"),
        ("https://hekla.example:8443", "hekla.example", "https://hekla.example:8443"),
    ],
)
def test_keys_answer_to_the_public_address(settings, public: str, name: str, origin: str) -> None:
    settings.PUBLIC_URL = public
    party = relying_party()
    assert (party.id, party.origin) == (name, origin)


@pytest.mark.parametrize(
    "public", ["http://10.0.0.5:8000", "https://10.0.0.5", "https://[fd00::1]", "http://hekla.lan"]
)
def test_a_number_or_no_https_is_said_and_does_not_fail(people: People, settings, public: str) -> None:
    settings.PUBLIC_URL = public
    assert relying_party() is None
    page = come(people.alice).get(reverse(PAGE)).content.decode()
    assert "only for a host name with HTTPS" in page
    assert "Add key" not in page


def test_who_came_by_another_name_is_sent_to_the_right_one(people: People, key: SoftwareKey, settings) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    client = come(people.alice)
    page = client.get(reverse(STEP)).content.decode()
    assert 'href="http://localhost:8000/accounts/sign-in/code/"' in page
    assert 'name="code"' in page
