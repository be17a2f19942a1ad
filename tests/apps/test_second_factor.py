"""One-time codes as second factor: when they are required, which are valid, and who removes them."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.authenticator import code_at

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.signin import codes, selectors, services
from hekla.apps.signin.models import RecoveryCode, SecondFactor, SecondFactorAttempts
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
PASSWORD = "a-long-walk-home"
STEP = timedelta(seconds=codes.STEP_SECONDS)


class Phone:
    """The authenticator app of a user."""

    def __init__(self, user: User, at: datetime) -> None:
        services.begin(user, now=at)
        self.secret = services.secret_of(SecondFactor.objects.get(user=user))
        self.recovery_codes = services.confirm(user, self.code(at), now=at)

    def code(self, at: datetime) -> str:
        return code_at(self.secret, at)


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def phone(people: People, now: datetime) -> Phone:
    people.alice.set_password(PASSWORD)
    people.alice.save()
    return Phone(people.alice, now - 10 * STEP)


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def sign_in(client: Client, target: str = "") -> str:
    answer = client.post(reverse("accounts:sign_in"), {"username": "alice", "password": PASSWORD, "next": target})
    return answer.headers["Location"]


def test_password_alone_does_not_sign_in(people: People, phone: Phone) -> None:
    client = Client()
    assert sign_in(client, "/queues/") == reverse("accounts:second_step")
    assert not is_signed_in(client)
    assert client.get("/").status_code == 302
    answer = client.post(reverse("accounts:second_step"), {"code": phone.code(clock.now())})
    assert answer.headers["Location"] == "/queues/"
    assert is_signed_in(client)
    assert LoggedEvent.objects.last().payload["method"] == "password"


def test_sign_in_link_needs_the_second_factor(people: People, phone: Phone, now: datetime) -> None:
    client, secret = Client(), accounts.issue_link(people.alice, actor=PLATFORM, now=now)
    answer = client.post(reverse("accounts:use_link", args=[secret]))
    assert answer.headers["Location"] == reverse("accounts:second_step")
    assert not is_signed_in(client)


def test_pending_sign_in_expires(people: People, phone: Phone, monkeypatch) -> None:
    client = Client()
    sign_in(client)
    later = clock.now() + timedelta(minutes=6)
    monkeypatch.setattr(clock, "now", lambda: later)
    answer = client.post(reverse("accounts:second_step"), {"code": phone.code(later)})
    assert answer.headers["Location"] == reverse("accounts:sign_in")
    assert not is_signed_in(client)


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_small_clock_differences_are_accepted(people: People, phone: Phone, now: datetime, steps: int) -> None:
    services.prove(people.alice, phone.code(now + steps * STEP), now=now)


@pytest.mark.parametrize("steps", [-2, 2, 40])
def test_large_clock_differences_are_refused(people: People, phone: Phone, now: datetime, steps: int) -> None:
    with pytest.raises(Refused, match="Wrong code"):
        services.prove(people.alice, phone.code(now + steps * STEP), now=now)


@pytest.mark.parametrize("code", ["", "12345", "1234567", "abcdef", "１２３４５６", "\0" * 6, "0" * 40])
def test_malformed_code_is_refused(people: People, phone: Phone, now: datetime, code: str) -> None:
    with pytest.raises(Refused, match="Wrong code"):
        services.prove(people.alice, code, now=now)


def test_code_with_spaces_is_accepted(people: People, phone: Phone, now: datetime) -> None:
    code = phone.code(now)
    services.prove(people.alice, f" {code[:3]} {code[3:]} ", now=now)


def test_code_works_once(people: People, phone: Phone, now: datetime) -> None:
    services.prove(people.alice, phone.code(now), now=now)
    with pytest.raises(Refused, match="used already"):
        services.prove(people.alice, phone.code(now), now=now)
    services.prove(people.alice, phone.code(now + STEP), now=now)
    with pytest.raises(Refused):
        services.prove(people.alice, phone.code(now), now=now)


def test_recovery_code_works_once(people: People, phone: Phone, now: datetime) -> None:
    first, second = phone.recovery_codes[:2]
    services.prove(people.alice, first.upper().replace("-", " "), now=now)
    assert LoggedEvent.objects.last().payload == {"left": 9}
    with pytest.raises(Refused):
        services.prove(people.alice, first, now=now)
    fresh = services.renew_codes(people.alice, now=now)
    with pytest.raises(Refused):
        services.prove(people.alice, second, now=now)
    services.prove(people.alice, fresh[0], now=now)


def test_ten_wrong_codes_lock_with_a_time(people: People, phone: Phone, now: datetime) -> None:
    for _ in range(services.MOST_WRONG):
        with pytest.raises(Refused):
            services.prove(people.alice, "000000", now=now)
    for right in (phone.code(now), phone.recovery_codes[0]):
        with pytest.raises(Refused, match=r"Try again at \d\d:\d\d"):
            services.prove(people.alice, right, now=now)
    later = now + services.WRONG_WITHIN
    services.prove(people.alice, phone.code(later), now=later)


def test_right_code_resets_the_counter(people: People, phone: Phone, now: datetime) -> None:
    for _ in range(services.MOST_WRONG - 1):
        with pytest.raises(Refused):
            services.prove(people.alice, "000000", now=now)
    services.prove(people.alice, phone.code(now), now=now)
    assert SecondFactorAttempts.objects.get().wrong == 0


def test_secrets_are_stored_encrypted(people: People, phone: Phone) -> None:
    stored = bytes(SecondFactor.objects.get().secret)
    assert phone.secret.encode() not in stored
    digests = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert not digests & set(phone.recovery_codes)


def test_recovery_codes_survive_a_secret_key_change(people: People, phone: Phone, now, settings) -> None:
    settings.SECRET_KEY = "another"
    with pytest.raises(Refused, match="Use a recovery code"):
        services.prove(people.alice, phone.code(now), now=now)
    services.prove(people.alice, phone.recovery_codes[0], now=now)


def test_setup_with_a_qr_code(people: People) -> None:
    people.alice.set_password(PASSWORD)
    people.alice.save()
    client = Client()
    assert sign_in(client) == "/"
    page = reverse("accounts:second_factor")
    assert "Set up" in client.get(page).content.decode()
    client.post(reverse("accounts:begin_factor"))
    setup_page = client.get(page)
    assert "<svg" in setup_page.content.decode()
    assert "no-store" in setup_page.headers["Cache-Control"]
    secret = setup_page.context["secret"]
    wrong = client.post(reverse("accounts:confirm_factor"), {"code": "000000"})
    assert "Wrong code" in str(wrong.context["form"].errors["code"])
    assert not selectors.has_second_factor(people.alice)
    done = client.post(reverse("accounts:confirm_factor"), {"code": code_at(secret, clock.now())})
    assert len(re.findall(r"\b(?:[a-z2-7]{4}-){3}[a-z2-7]{4}\b", done.context["codes"])) == codes.RECOVERY_CODES
    assert selectors.has_second_factor(people.alice)
    again = client.get(page).content.decode()
    assert secret not in again
    assert "10 recovery codes left" in again


CHANGES = ["second_factor", "begin_factor", "confirm_factor", "renew_codes", "remove_factor"]


@pytest.mark.parametrize("name", CHANGES)
def test_changes_need_a_fresh_proof(people: People, phone: Phone, as_, name: str) -> None:
    client = as_(people.alice)
    request = client.get if name == "second_factor" else client.post
    assert request(reverse(f"accounts:{name}")).headers["Location"].startswith(reverse("accounts:prove"))
    assert selectors.has_second_factor(people.alice)


def test_code_is_a_fresh_proof(people: People, phone: Phone, as_) -> None:
    client, page = as_(people.alice), reverse("accounts:second_factor")
    wrong = client.post(reverse("accounts:prove"), {"code": "000000", "next": page})
    assert "code" in wrong.context["form"].errors
    right = client.post(reverse("accounts:prove"), {"code": phone.code(clock.now()), "next": page})
    assert right.headers["Location"] == page
    assert client.get(page).status_code == 200
    assert client.post(reverse("accounts:remove_factor")).status_code == 302
    assert not selectors.has_second_factor(people.alice)


def test_password_is_a_fresh_proof_without_a_factor(people: People, as_) -> None:
    people.alice.set_password(PASSWORD)
    people.alice.save()
    client = as_(people.alice)
    wrong = client.post(reverse("accounts:prove"), {"password": "guess"})
    assert wrong.context["form"].errors["password"] == ["Wrong password."]
    assert client.post(reverse("accounts:prove"), {"password": PASSWORD}).status_code == 302
    external = client.post(reverse("accounts:prove"), {"password": PASSWORD, "next": "https://example.org/"})
    assert external.headers["Location"] == reverse("accounts:profile")


def test_user_without_password_or_factor_gets_advice(people: People, as_) -> None:
    assert "new sign-in link" in as_(people.charlie).get(reverse("accounts:prove")).content.decode()


def test_platform_admin_resets_a_lost_factor(people: People, phone: Phone, now: datetime) -> None:
    with pytest.raises(Forbidden):
        services.reset(people.alice, by=people.bob, now=now)
    services.reset(people.alice, by=people.ada, now=now)
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().actor_name) == ("SecondFactorRemoved", "ada")
    with pytest.raises(NotFound):
        services.reset(people.alice, by=people.ada, now=now)


def test_required_factor_cannot_be_removed(people: People, phone: Phone, now: datetime, settings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    with pytest.raises(Refused, match="your only second factor"):
        services.remove(people.alice, now=now)
    assert selectors.has_second_factor(people.alice)
    services.reset(people.alice, by=people.ada, now=now)
    assert not RecoveryCode.objects.exists()


@pytest.mark.parametrize(
    ("rule", "username", "is_redirected"),
    [("", "ada", False), ("admins", "ada", True), ("admins", "alice", False), ("everybody", "alice", True)],
)
def test_required_factor_redirects_to_setup(
    people: People, as_: Callable[[User], Client], settings, rule: str, username: str, is_redirected: bool
) -> None:
    settings.SECOND_FACTOR_FOR = rule
    user = getattr(people, username)
    answer = as_(user).get("/")
    assert (answer.headers.get("Location") == reverse("accounts:second_factor")) == is_redirected
    Phone(user, clock.now())
    assert as_(user).get("/").status_code == 200
