"""A code besides the password: who is asked for it, what is taken for one, and who may end it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.support.authenticator import code_at

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.signin import codes, selectors, services
from hekla.apps.signin.models import RecoveryCode, SecondFactor, SecondFactorAttempts
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.lib import clock

PASSWORD = "a-long-walk-home"
STEP = timedelta(seconds=codes.STEP_SECONDS)


class Phone:
    """Somebody's app."""

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


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def with_password(client: Client, target: str = "") -> str:
    answer = client.post(reverse("accounts:sign_in"), {"username": "alice", "password": PASSWORD, "next": target})
    return answer.headers["Location"]


def test_a_password_is_half_of_the_way(people: People, phone: Phone) -> None:
    client = Client()
    assert with_password(client, "/queues/") == reverse("accounts:second_step")
    assert not signed_in(client)
    assert client.get("/").status_code == 302
    answer = client.post(reverse("accounts:second_step"), {"code": phone.code(clock.now())})
    assert answer.headers["Location"] == "/queues/"
    assert signed_in(client)
    assert LoggedEvent.objects.last().payload["method"] == "password"


def test_a_link_of_an_admin_does_not_go_round_it(people: People, phone: Phone, now: datetime) -> None:
    client, secret = Client(), accounts.issue_link(people.alice, now=now)
    answer = client.post(reverse("accounts:use_link", args=[secret]))
    assert answer.headers["Location"] == reverse("accounts:second_step")
    assert not signed_in(client)


def test_who_waits_half_way_too_long_begins_again(people: People, phone: Phone, monkeypatch) -> None:
    client = Client()
    with_password(client)
    later = clock.now() + timedelta(minutes=6)
    monkeypatch.setattr(clock, "now", lambda: later)
    answer = client.post(reverse("accounts:second_step"), {"code": phone.code(later)})
    assert answer.headers["Location"] == reverse("accounts:sign_in")
    assert not signed_in(client)


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_clocks_may_differ_a_little(people: People, phone: Phone, now: datetime, steps: int) -> None:
    services.prove(people.alice, phone.code(now + steps * STEP), now=now)


@pytest.mark.parametrize("steps", [-2, 2, 40])
def test_and_not_more(people: People, phone: Phone, now: datetime, steps: int) -> None:
    with pytest.raises(Refused, match="Wrong code"):
        services.prove(people.alice, phone.code(now + steps * STEP), now=now)


@pytest.mark.parametrize("typed", ["", "12345", "1234567", "abcdef", "１２３４５６", "\0" * 6, "0" * 40])
def test_nonsense_is_no_code(people: People, phone: Phone, now: datetime, typed: str) -> None:
    with pytest.raises(Refused, match="Wrong code"):
        services.prove(people.alice, typed, now=now)


def test_a_code_may_be_typed_in_groups(people: People, phone: Phone, now: datetime) -> None:
    code = phone.code(now)
    services.prove(people.alice, f" {code[:3]} {code[3:]} ", now=now)


def test_a_code_is_taken_once(people: People, phone: Phone, now: datetime) -> None:
    services.prove(people.alice, phone.code(now), now=now)
    with pytest.raises(Refused, match="used already"):
        services.prove(people.alice, phone.code(now), now=now)
    services.prove(people.alice, phone.code(now + STEP), now=now)
    with pytest.raises(Refused):
        services.prove(people.alice, phone.code(now), now=now)


def test_a_recovery_code_stands_in_once(people: People, phone: Phone, now: datetime) -> None:
    first, second = phone.recovery_codes[:2]
    services.prove(people.alice, first.upper().replace("-", " "), now=now)
    assert LoggedEvent.objects.last().payload == {"left": 9}
    with pytest.raises(Refused):
        services.prove(people.alice, first, now=now)
    fresh = services.renew_codes(people.alice, now=now)
    with pytest.raises(Refused):
        services.prove(people.alice, second, now=now)
    services.prove(people.alice, fresh[0], now=now)


def test_after_ten_wrong_codes_one_waits_and_is_told_until_when(people: People, phone: Phone, now: datetime) -> None:
    for _ in range(services.MOST_WRONG):
        with pytest.raises(Refused):
            services.prove(people.alice, "000000", now=now)
    for right in (phone.code(now), phone.recovery_codes[0]):
        with pytest.raises(Refused, match=r"Try again at \d\d:\d\d"):
            services.prove(people.alice, right, now=now)
    later = now + services.WRONG_WITHIN
    services.prove(people.alice, phone.code(later), now=later)


def test_a_right_code_lets_one_off(people: People, phone: Phone, now: datetime) -> None:
    for _ in range(services.MOST_WRONG - 1):
        with pytest.raises(Refused):
            services.prove(people.alice, "000000", now=now)
    services.prove(people.alice, phone.code(now), now=now)
    assert SecondFactorAttempts.objects.get().wrong == 0


def test_what_is_kept_tells_nothing(people: People, phone: Phone) -> None:
    kept = bytes(SecondFactor.objects.get().secret)
    assert phone.secret.encode() not in kept
    digests = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert not digests & set(phone.recovery_codes)


def test_with_another_secret_of_the_console_recovery_codes_still_work(
    people: People, phone: Phone, now, settings
) -> None:
    settings.SECRET_KEY = "another"
    with pytest.raises(Refused, match="Use a recovery code"):
        services.prove(people.alice, phone.code(now), now=now)
    services.prove(people.alice, phone.recovery_codes[0], now=now)


def test_one_sets_it_up_with_a_picture(people: People) -> None:
    people.alice.set_password(PASSWORD)
    people.alice.save()
    client = Client()
    assert with_password(client) == "/"
    page = reverse("accounts:second_factor")
    assert "Set up" in client.get(page).content.decode()
    client.post(reverse("accounts:begin_factor"))
    shown = client.get(page)
    assert "<svg" in shown.content.decode()
    assert "no-store" in shown.headers["Cache-Control"]
    secret = shown.context["secret"]
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
def test_an_unlocked_screen_is_not_enough(people: People, phone: Phone, as_, name: str) -> None:
    client = as_(people.alice)
    ask = client.get if name == "second_factor" else client.post
    assert ask(reverse(f"accounts:{name}")).headers["Location"].startswith(reverse("accounts:prove"))
    assert selectors.has_second_factor(people.alice)


def test_one_proves_it_with_a_code_and_goes_on(people: People, phone: Phone, as_) -> None:
    client, page = as_(people.alice), reverse("accounts:second_factor")
    wrong = client.post(reverse("accounts:prove"), {"code": "000000", "next": page})
    assert "code" in wrong.context["form"].errors
    right = client.post(reverse("accounts:prove"), {"code": phone.code(clock.now()), "next": page})
    assert right.headers["Location"] == page
    assert client.get(page).status_code == 200
    assert client.post(reverse("accounts:remove_factor")).status_code == 302
    assert not selectors.has_second_factor(people.alice)


def test_or_with_the_password_where_there_is_no_code(people: People, as_) -> None:
    people.alice.set_password(PASSWORD)
    people.alice.save()
    client = as_(people.alice)
    wrong = client.post(reverse("accounts:prove"), {"password": "guess"})
    assert wrong.context["form"].errors["password"] == ["Wrong password."]
    assert client.post(reverse("accounts:prove"), {"password": PASSWORD}).status_code == 302
    away = client.post(reverse("accounts:prove"), {"password": PASSWORD, "next": "https://example.org/"})
    assert away.headers["Location"] == reverse("accounts:profile")


def test_who_has_neither_is_told_what_to_do(people: People, as_) -> None:
    assert "new sign-in link" in as_(people.charlie).get(reverse("accounts:prove")).content.decode()


def test_a_platform_admin_ends_what_was_lost(people: People, phone: Phone, now: datetime) -> None:
    with pytest.raises(Forbidden):
        services.reset(people.alice, by=people.bob, now=now)
    services.reset(people.alice, by=people.ada, now=now)
    assert (LoggedEvent.objects.last().kind, LoggedEvent.objects.last().actor_name) == ("SecondFactorRemoved", "ada")
    with pytest.raises(NotFound):
        services.reset(people.alice, by=people.ada, now=now)


def test_who_must_have_one_keeps_the_last(people: People, phone: Phone, now: datetime, settings) -> None:
    settings.SECOND_FACTOR_FOR = "everybody"
    with pytest.raises(Refused, match="your only second factor"):
        services.remove(people.alice, now=now)
    assert selectors.has_second_factor(people.alice)
    services.reset(people.alice, by=people.ada, now=now)
    assert not RecoveryCode.objects.exists()


@pytest.mark.parametrize(
    ("rule", "who", "sent"),
    [("", "ada", False), ("admins", "ada", True), ("admins", "alice", False), ("everybody", "alice", True)],
)
def test_a_rule_sends_those_that_lack_it_to_the_page(
    people: People, as_: Callable[[User], Client], settings, rule: str, who: str, sent: bool
) -> None:
    settings.SECOND_FACTOR_FOR = rule
    user = getattr(people, who)
    answer = as_(user).get("/")
    assert (answer.headers.get("Location") == reverse("accounts:second_factor")) == sent
    Phone(user, clock.now())
    assert as_(user).get("/").status_code == 200
