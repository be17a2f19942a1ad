"""Security keys and passkeys as second factor: which answers are accepted and which are refused."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.authenticator import code_at
from tests.support.security_key import SoftwareKey

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.signin import selectors, services
from hekla.apps.signin.models import RecoveryCode, SecondFactor, SecurityKey
from hekla.apps.signin.relying_party import relying_party
from hekla.domain.errors import NotFound, Refused
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
PAGE, STEP = "accounts:second_factor", "accounts:second_step"


@pytest.fixture(autouse=True)
def localhost(settings) -> None:
    settings.PUBLIC_URL = "http://localhost"
    settings.ALLOWED_HOSTS = ["*"]


@pytest.fixture
def now() -> datetime:
    return clock.now()


def browser() -> Client:
    return Client(headers={"host": "localhost"})


def first_step(user: User) -> Client:
    """A browser of a user after the first factor. Without a second factor, the user is signed in."""
    client = browser()
    client.post(reverse("accounts:use_link", args=[accounts.issue_link(user, actor=PLATFORM, now=clock.now())]))
    return client


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def add(client: Client, key: SoftwareKey, name: str = "blue") -> HttpResponse:
    options = client.get(reverse(PAGE)).context["key"].options
    return client.post(reverse("accounts:add_key"), {"name": name, "credential": key.create(options)})


def request_options(client: Client) -> str:
    """The request options that the second step sends to a key."""
    return client.get(reverse(STEP)).context["key"].options


def send(client: Client, answer: str) -> HttpResponse:
    return client.post(reverse(STEP), {"credential": answer})


def problems(answer: HttpResponse) -> str:
    return str(answer.context["key_form"].errors)


@pytest.fixture
def key(people: People) -> SoftwareKey:
    """A key of Alice's."""
    key = SoftwareKey()
    add(first_step(people.alice), key)
    return key


def test_key_is_a_second_factor(people: People) -> None:
    client, key = first_step(people.alice), SoftwareKey()
    assert is_signed_in(client)
    added = add(client, key)
    assert len(added.context["codes"].split()) == 10
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().payload) == (
        "SecurityKeyAdded",
        {"name": "blue"},
    )
    client = first_step(people.alice)
    assert not is_signed_in(client)
    assert send(client, key.get(request_options(client))).headers["Location"] == "/"
    assert is_signed_in(client)
    client.get(reverse(PAGE))
    assert SecurityKey.objects.get().last_used_at is not None


def test_recovery_code_replaces_a_key(people: People) -> None:
    added = add(first_step(people.alice), SoftwareKey())
    client = first_step(people.alice)
    wrong = client.post(reverse(STEP), {"code": "123456"})
    assert "Unknown or used recovery code" in str(wrong.context["form"].errors)
    client.post(reverse(STEP), {"code": added.context["codes"].split()[0]})
    assert is_signed_in(client)


def test_answer_of_another_origin_is_refused(people: People, key: SoftwareKey) -> None:
    key.origin = "http://localhost.evil.example"
    client = first_step(people.alice)
    assert "does not verify" in problems(send(client, key.get(request_options(client))))
    assert not is_signed_in(client)


def test_key_of_another_origin_is_not_added(people: People) -> None:
    answer = add(first_step(people.alice), SoftwareKey(origin="https://evil.example"))
    assert "Invalid answer" in problems(answer)
    assert not SecurityKey.objects.exists()


def test_answer_works_once(people: People, key: SoftwareKey) -> None:
    client = first_step(people.alice)
    answer = key.get(request_options(client))
    assert send(client, answer).status_code == 302
    client = first_step(people.alice)
    assert "sent twice" in problems(send(client, answer))  # no challenge was sent yet
    request_options(client)
    assert "does not verify" in problems(send(client, answer))  # the challenge is another one
    assert not is_signed_in(client)


def test_challenge_works_once(people: People, key: SoftwareKey) -> None:
    client = first_step(people.alice)
    options = request_options(client)
    send(client, "{}")
    assert "does not verify" in problems(send(client, key.get(options)))
    assert not is_signed_in(client)


def test_challenge_expires_after_five_minutes(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    client, key = first_step(people.alice), SoftwareKey()
    options, later = client.get(reverse(PAGE)).context["key"].options, clock.now() + timedelta(seconds=301)
    monkeypatch.setattr(clock, "now", lambda: later)
    answer = client.post(reverse("accounts:add_key"), {"name": "late", "credential": key.create(options)})
    assert "more than five minutes" in problems(answer)
    assert not SecurityKey.objects.exists()


@pytest.mark.parametrize("behind", [0, 1, 5])
def test_decreasing_counter_is_refused(people: People, key: SoftwareKey, behind: int) -> None:
    key.count = 10
    client = first_step(people.alice)
    assert send(client, key.get(request_options(client))).status_code == 302
    key.count -= 1 + behind
    client = first_step(people.alice)
    assert "does not verify" in problems(send(client, key.get(request_options(client))))
    assert not is_signed_in(client)


def test_key_works_for_its_owner_only(people: People, key: SoftwareKey) -> None:
    add(first_step(people.bob), SoftwareKey())
    client = first_step(people.bob)
    assert "does not verify" in problems(send(client, key.get(request_options(client))))
    forged = SoftwareKey(credential_id=bytes(SecurityKey.objects.get(user=people.bob).credential_id))
    assert "does not verify" in problems(send(client, forged.get(request_options(client))))
    assert not is_signed_in(client)


def test_registered_key_is_not_added_again(people: People, key: SoftwareKey) -> None:
    assert "already registered here" in problems(add(first_step(people.bob), key))
    assert not selectors.has_second_factor(people.bob)


@pytest.mark.parametrize("answer", ["", "{}", "[]", "null", "x", '{"id": 1}', "[" * 9_000, "\0", "é" * 20_000])
def test_malformed_answer_is_refused(people: People, key: SoftwareKey, answer: str) -> None:
    client = first_step(people.alice)
    request_options(client)
    assert problems(send(client, answer))
    assert not is_signed_in(client)


def test_ten_wrong_answers_lock_keys_and_codes(people: People, key: SoftwareKey, now: datetime) -> None:
    for _ in range(services.MOST_WRONG):
        with pytest.raises(Refused):
            services.prove_with_key(people.alice, answer="{}", challenge=b"x", now=now)
    with pytest.raises(Refused, match=r"Try again at \d\d:\d\d"):
        services.prove(people.alice, "123456", now=now)
    client = first_step(people.alice)
    assert "Try again at" in problems(send(client, key.get(request_options(client))))
    assert not is_signed_in(client)


def test_key_and_app_are_alternatives(people: People, key: SoftwareKey, now: datetime) -> None:
    before = set(RecoveryCode.objects.values_list("digest", flat=True))
    services.begin(people.alice, now=now)
    secret = services.secret_of(SecondFactor.objects.get())
    earlier = now - timedelta(minutes=5)
    assert services.confirm(people.alice, code_at(secret, earlier), now=earlier) == []
    assert set(RecoveryCode.objects.values_list("digest", flat=True)) == before
    services.prove(people.alice, code_at(secret, now), now=now)
    services.remove_key(people.alice, SecurityKey.objects.get().pk, now=now)
    assert selectors.has_second_factor(people.alice)


def test_unconfirmed_app_is_not_accepted(people: People, key: SoftwareKey, now: datetime) -> None:
    services.begin(people.alice, now=now)
    with pytest.raises(Refused, match="Unknown or used recovery code"):
        services.prove(people.alice, code_at(services.secret_of(SecondFactor.objects.get()), now), now=now)


def test_required_last_key_cannot_be_removed(people: People, key: SoftwareKey, settings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    client = first_step(people.alice)
    send(client, key.get(request_options(client)))
    remove = reverse("accounts:remove_key", args=[SecurityKey.objects.get().pk])
    page = client.post(remove, headers={"referer": "http://localhost" + reverse(PAGE)}, follow=True)
    assert "your only second factor" in page.content.decode()
    assert SecurityKey.objects.count() == 1
    add(client, SoftwareKey(), "spare")
    client.post(remove)
    assert [one.name for one in selectors.keys_of(people.alice)] == ["spare"]


def test_removal_of_the_last_key_deletes_recovery_codes(people: People, key: SoftwareKey, now: datetime) -> None:
    services.remove_key(people.alice, SecurityKey.objects.get().pk, now=now)
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().payload) == (
        "SecurityKeyRemoved",
        {"name": "blue"},
    )
    assert not selectors.has_second_factor(people.alice)
    assert not RecoveryCode.objects.exists()


def test_key_of_another_user_is_not_found(people: People, key: SoftwareKey, now: datetime) -> None:
    with pytest.raises(NotFound):
        services.remove_key(people.bob, SecurityKey.objects.get().pk, now=now)
    answer = first_step(people.bob).post(reverse("accounts:remove_key", args=[SecurityKey.objects.get().pk]))
    assert answer.status_code == 404


def test_required_factor_can_be_a_key(people: People, settings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    client = first_step(people.alice)
    assert client.get("/").headers["Location"] == reverse(PAGE)
    add(client, SoftwareKey())
    assert client.get("/").status_code == 200


def test_number_of_keys_is_limited(people: People) -> None:
    client = first_step(people.alice)
    for number in range(services.MOST_KEYS - 1):
        SecurityKey.objects.create(
            user=people.alice, name=str(number), credential_id=bytes([number]), public_key=b"", created_at=clock.now()
        )
    options = client.get(reverse(PAGE)).context["key"].options
    add(client, SoftwareKey())
    assert "maximum number of keys" in client.get(reverse(PAGE)).content.decode()
    answer = client.post(reverse("accounts:add_key"), {"name": "more", "credential": SoftwareKey().create(options)})
    assert "the maximum" in problems(answer)


def test_key_is_a_fresh_proof(people: People, key: SoftwareKey) -> None:
    client, prove = browser(), reverse("accounts:prove")
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse(PAGE)).headers["Location"].startswith(prove)
    page = client.get(prove, {"next": reverse(PAGE)})
    answer = {"credential": key.get(page.context["key"].options), "next": reverse(PAGE)}
    assert client.post(prove, answer).headers["Location"] == reverse(PAGE)
    assert client.get(reverse(PAGE)).status_code == 200


@pytest.mark.parametrize("name", ["add_key", "remove_key"])
def test_changes_need_a_fresh_proof(people: People, key: SoftwareKey, as_: Callable, name: str) -> None:
    address = reverse(f"accounts:{name}", args=[SecurityKey.objects.get().pk] if name == "remove_key" else [])
    assert as_(people.alice).post(address).headers["Location"].startswith(reverse("accounts:prove"))
    assert SecurityKey.objects.count() == 1


def test_platform_admin_resets_lost_keys(people: People, key: SoftwareKey, now: datetime) -> None:
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
def test_relying_party_is_the_public_host(settings, public: str, name: str, origin: str) -> None:
    settings.PUBLIC_URL = public
    party = relying_party()
    assert (party.id, party.origin) == (name, origin)


@pytest.mark.parametrize(
    "public", ["http://10.0.0.5:8000", "https://10.0.0.5", "https://[fd00::1]", "http://hekla.lan"]
)
def test_unsuitable_public_address_is_explained(people: People, settings, public: str) -> None:
    settings.PUBLIC_URL = public
    assert relying_party() is None
    page = first_step(people.alice).get(reverse(PAGE)).content.decode()
    assert "only for a host name with HTTPS" in page
    assert "Add key" not in page


def test_other_host_name_links_to_the_public_one(people: People, key: SoftwareKey, settings) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    client = first_step(people.alice)
    page = client.get(reverse(STEP)).content.decode()
    assert 'href="http://localhost:8000/accounts/sign-in/code/"' in page
    assert 'name="code"' in page
