"""Changes of credentials: a session alone is not enough, and each leaves an event."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractBaseUser
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse
from tests.api.openpai import V2
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import selectors
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import SignInLink, User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.notifications import labels
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Delivery, Notification, Preference
from hekla.domain.errors import NotFound
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
OLD, NEW = "a-long-walk-home", "a-longer-walk-back"
PROFILE = {"display_name": "Alice", "password": NEW}
TOKEN = {"name": "ci", "days": "3", "scopes": ["admin"]}
As = Callable[[AbstractBaseUser], Client]


@pytest.fixture
def alice(people: People) -> User:
    accounts.change_user(people.alice, {}, password=OLD, actor=PLATFORM, now=clock.now())
    return people.alice


def kinds() -> list[str]:
    return list(LoggedEvent.objects.order_by("pk").values_list("kind", flat=True))


@pytest.mark.parametrize(
    ("extra", "changes"), [({}, False), ({"current_password": "wrong"}, False), ({"current_password": OLD}, True)]
)
def test_new_password_needs_the_current_one(alice: User, as_: As, extra: dict[str, str], changes: bool) -> None:
    browser, before = as_(alice), kinds().count("PasswordChanged")
    answer = browser.post(reverse("accounts:profile"), {**PROFILE, **extra})
    alice.refresh_from_db()
    assert alice.check_password(NEW) is changes
    assert kinds().count("PasswordChanged") - before == changes
    assert (answer.status_code == 302) is changes
    if not changes:
        assert "Enter your current password." in answer.text


def test_name_changes_without_a_password(alice: User, as_: As) -> None:
    assert as_(alice).post(reverse("accounts:profile"), {"display_name": "Alice L."}).status_code == 302
    alice.refresh_from_db()
    assert alice.display_name == "Alice L."
    assert alice.check_password(OLD)


def test_first_password_needs_no_current_one(people: People, as_: As) -> None:
    people.bob.set_unusable_password()
    people.bob.save(update_fields=["password"])
    assert as_(people.bob).post(reverse("accounts:profile"), {**PROFILE, "display_name": "Bob"}).status_code == 302


def test_guesses_are_limited(alice: User, as_: As) -> None:
    browser = as_(alice)
    answers = [browser.post(reverse("accounts:profile"), {**PROFILE, "current_password": f"{n}"}) for n in range(12)]
    assert "Too many attempts" in answers[-1].text
    assert "Too many attempts" in browser.post(reverse("accounts:profile"), {**PROFILE, "current_password": OLD}).text


def test_tokens_are_revoked_on_request(alice: User, as_: As) -> None:
    accounts.create_token(alice, name="laptop", lifetime=timedelta(days=1), now=clock.now())
    browser = as_(alice)
    browser.post(reverse("accounts:profile"), {**PROFILE, "current_password": OLD})
    assert len(selectors.tokens_of(alice)) == 1
    again = {"display_name": "Alice", "revokes_tokens": "on"}
    browser.post(reverse("accounts:profile"), again)
    assert not selectors.tokens_of(alice)


@pytest.mark.parametrize(("extra", "status"), [({}, 400), ({"current_password": OLD}, 201)])
def test_admin_token_by_a_session_needs_the_password(alice: User, as_: As, extra: dict[str, str], status: int) -> None:
    document: dict[str, Any] = {"name": "ci", "days": 3, "scopes": ["admin"], **extra}
    answer = as_(alice).post("/api/v1/tokens", document, content_type="application/json")
    assert answer.status_code == status, answer.text


def test_admin_token_on_the_page_needs_the_password(alice: User, as_: As) -> None:
    browser = as_(alice)
    refused = browser.post(reverse("accounts:create_token"), TOKEN)
    assert "Enter your current password." in refused.text
    assert not selectors.tokens_of(alice)
    assert "hk_" in browser.post(reverse("accounts:create_token"), {**TOKEN, "current_password": OLD}).text
    assert "hk_" in browser.post(reverse("accounts:create_token"), {**TOKEN, "scopes": ["read"]}).text


def confirm_identity(browser: Client, password: str) -> None:
    assert browser.post(reverse("accounts:prove"), {"password": password}).status_code == 302


@pytest.fixture
def ada(people: People) -> User:
    accounts.change_user(people.ada, {}, password=OLD, actor=PLATFORM, now=clock.now())
    return people.ada


def test_link_by_an_admin_needs_a_fresh_proof_and_leaves_an_event(people: People, ada: User, as_: As) -> None:
    browser, page = as_(ada), reverse("accounts:give_link", args=[people.bob.pk])
    redirect = browser.post(page).headers["Location"]
    assert redirect.startswith(reverse("accounts:prove"))
    assert not SignInLink.objects.exists()
    proved = browser.post(redirect, {"password": OLD})
    assert proved.headers["Location"] == reverse("accounts:edit", args=[people.bob.pk])
    assert "Shown once" in browser.post(page).text
    event = LoggedEvent.objects.get(kind="SignInLinkCreated")
    assert (event.actor_name, event.subject) == ("ada", f"user:{people.bob.pk}")


def test_unused_link_ends_with_a_new_password(alice: User) -> None:
    now = clock.now()
    assert accounts.use_link(accounts.issue_link(alice, actor=PLATFORM, now=now), now=now) == alice
    unused = accounts.issue_link(alice, actor=PLATFORM, now=now)
    accounts.change_user(alice, {"display_name": "A."}, password=None, actor=PLATFORM, now=now)
    assert SignInLink.objects.filter(used_at=None).count() == 1
    accounts.change_user(alice, {}, password=NEW, actor=PLATFORM, now=now)
    with pytest.raises(NotFound):
        accounts.use_link(unused, now=now)


def person_form(user: User, **changes: str) -> dict[str, str]:
    return {"username": user.username, "display_name": user.display_name, "is_active": "on", **changes}


@pytest.mark.parametrize("changes", [{"password": NEW}, {"platform_role": "admin"}])
@pytest.mark.parametrize(("current", "status"), [("", 200), ("wrong", 200), (OLD, 302)])
def test_admin_proves_who_they_are_for_a_password_or_role(
    people: People, ada: User, as_: As, changes: dict[str, str], current: str, status: int
) -> None:
    browser, fields = as_(ada), person_form(people.bob, current_password=current, **changes)
    answer = browser.post(reverse("accounts:edit", args=[people.bob.pk]), fields)
    assert answer.status_code == status
    people.bob.refresh_from_db()
    assert (people.bob.has_usable_password() or people.bob.platform_role == "admin") is (status == 302)
    added = browser.post(reverse("accounts:create"), {**fields, "username": "dora"})
    assert (added.status_code, User.objects.filter(username="dora").exists()) == (status, status == 302)


def test_admin_changes_other_fields_without_a_password(people: People, ada: User, as_: As) -> None:
    page = reverse("accounts:edit", args=[people.bob.pk])
    assert as_(ada).post(page, person_form(people.bob, display_name="Bob L.")).status_code == 302
    people.bob.refresh_from_db()
    assert people.bob.display_name == "Bob L."


def test_password_by_an_admin_ends_sessions_and_tokens_on_request(alice: User, ada: User, as_: As) -> None:
    accounts.create_token(alice, name="laptop", lifetime=timedelta(days=1), now=clock.now())
    session, page = as_(alice), reverse("accounts:edit", args=[alice.pk])
    fields = person_form(alice, password=NEW, current_password=OLD)
    assert session.get("/").status_code == 200
    as_(ada).post(page, fields)
    assert session.get("/").status_code == 302
    assert len(selectors.tokens_of(alice)) == 1
    as_(ada).post(page, {**fields, "revokes_tokens": "on"})
    assert not selectors.tokens_of(alice)
    assert LoggedEvent.objects.get(kind="TokenRevoked").actor_name == "ada"


def sentences(user: User) -> list[str]:
    notifications.follow(now=clock.now())
    return [labels.sentence(one) for one in Notification.objects.filter(user=user).order_by("pk")]


def test_person_is_notified_of_each_credential_change(alice: User, ada: User, as_: As) -> None:
    notifications.follow(now=clock.now())
    browser = as_(alice)
    browser.post(reverse("accounts:profile"), {**PROFILE, "current_password": OLD})
    browser.post(reverse("accounts:create_token"), {**TOKEN, "current_password": NEW})
    admin = as_(ada)
    confirm_identity(admin, OLD)
    admin.post(reverse("accounts:give_link", args=[alice.pk]))
    admin.post(reverse("accounts:edit", args=[alice.pk]), person_form(alice, password=OLD, current_password=OLD))
    own = "If this was not you, change your password and ask a platform admin."
    assert sentences(alice) == [
        f"Your account: Password changed. {own}",
        f"Your account: Token created (ci). {own}",
        "Your account: Sign-in link created, by ada.",
        "Your account: Password changed, by ada.",
    ]
    assert sentences(ada) == []
    alice.refresh_from_db()
    assert "Password changed, by ada." in as_(alice).get(reverse("notifications:list")).text


def test_changes_by_the_console_itself_are_no_news(alice: User) -> None:
    notifications.follow(now=clock.now())
    accounts.issue_link(alice, actor=PLATFORM, now=clock.now())
    assert sentences(alice) == []


def test_sign_in_of_a_program_is_no_news(alice: User) -> None:
    notifications.follow(now=clock.now())
    fields = {"username": "alice", "password": OLD}
    answer = Client().post(f"{V2}/authn/basic/login", fields, content_type="application/json")
    program = Client(headers={"Authorization": f"Bearer {answer.json()['token']}"})
    assert program.delete(f"{V2}/authn/basic/logout").status_code == 200
    assert kinds().count("TokenRevoked") == 1
    assert sentences(alice) == []


@pytest.mark.parametrize(("address", "channels"), [("", []), ("alice@example.org", ["mail"])])
def test_credential_change_is_mailed_whatever_the_settings(
    alice: User, settings: Any, address: str, channels: list[str]
) -> None:
    settings.MAIL_IS_SET_UP = True
    notifications.follow(now=clock.now())
    Preference.objects.create(user=alice, mail=address, channels=["page"], is_digest=True)
    accounts.change_user(alice, {}, password=NEW, actor=accounts.actor_of(alice), now=clock.now())
    sentences(alice)
    assert list(Delivery.objects.values_list("channel", flat=True)) == channels
    assert all(delivery.due_at <= clock.now() for delivery in Delivery.objects.all())


ADDRESSES = {"moments": [], "channels": [], "mail": "alice@example.org"}


def _choose_on_the_page(browser: Client, mail: str) -> int:
    fields = {"mail": mail, "long_wait_minutes": "30", "is_digest": "on"}
    return browser.post(reverse("notifications:settings"), fields).status_code


def _choose_over_rest(browser: Client, mail: str) -> int:
    fields = {"moments": [], "channels": [], "mail": mail, "is_digest": True}
    answer = browser.put("/api/v1/notifications/settings", fields, content_type="application/json")
    return answer.status_code


@pytest.mark.parametrize("choose", [_choose_on_the_page, _choose_over_rest])
@pytest.mark.parametrize("new", ["mallory@example.org", ""])
def test_another_address_for_notifications_is_mailed_to_the_old_one(
    alice: User, as_: As, settings: Any, mailoutbox: list[EmailMessage], choose: Callable[..., int], new: str
) -> None:
    settings.MAIL_IS_SET_UP = True
    notifications.follow(now=clock.now())
    notifications.choose(alice, ADDRESSES, now=clock.now())
    browser, now = as_(alice), clock.now()
    assert choose(browser, new) in (200, 302)
    event = LoggedEvent.objects.filter(kind="MailAddressChanged").latest("pk")
    assert (event.actor_name, event.subject) == ("alice", f"user:{alice.pk}")
    assert event.payload == {"old": "alice@example.org", "new": new}
    own = "Email address for notifications changed. If this was not you, change your password and ask a platform admin."
    assert sentences(alice)[-1] == f"Your account: {own}"
    notifications.send_due(now=clock.now())
    assert [mail.to for mail in mailoutbox][-1:] == [["alice@example.org"]]
    assert own in mailoutbox[-1].body
    assert Delivery.objects.latest("pk").due_at < now + timedelta(minutes=1)


def test_other_settings_and_the_same_address_are_no_news(alice: User, as_: As) -> None:
    notifications.choose(alice, ADDRESSES, now=clock.now())
    sentences(alice)
    before = kinds()
    assert _choose_on_the_page(as_(alice), "alice@example.org") == 302
    notifications.choose(alice, {"long_wait_minutes": 7}, now=clock.now())
    assert kinds() == before


def test_later_mails_go_to_the_new_address(alice: User, settings: Any, mailoutbox: list[EmailMessage]) -> None:
    """With grouped mail, the notice to the old address takes no other notification along."""
    settings.MAIL_IS_SET_UP = True
    notifications.follow(now=clock.now())
    for address in ("alice@example.org", "alice@lab.example"):
        notifications.choose(alice, {**ADDRESSES, "is_digest": True, "mail": address}, now=clock.now())
    accounts.change_user(alice, {}, password=NEW, actor=accounts.actor_of(alice), now=clock.now())
    notifications.follow(now=clock.now())
    notifications.send_due(now=clock.now())
    found = [(mail.to[0], "Password changed" in mail.body) for mail in mailoutbox]
    assert found == [("alice@example.org", False), ("alice@lab.example", True)]
