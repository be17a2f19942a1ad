"""Invitations: who may invite, what the link is good for, and how often."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.invitations import letters, selectors, services
from hekla.apps.invitations.models import Invitation
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Membership
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.lib import clock

As = Callable[[User], Client]
DORA = {"username": "dora", "display_name": "Dora", "password": "a-long-walk-home"}


def invited(people: People, **more: object) -> str:
    by = more.pop("by", people.alice)
    return services.invite(people.lab, role="member", by=by, now=clock.now(), **more)[1]


def page(secret: str) -> str:
    return reverse("invitations:sign_up", args=[secret])


def role_of(name: str, tenant: str = "lab") -> str | None:
    return Membership.objects.filter(user__username=name, tenant__slug=tenant).values_list("role", flat=True).first()


def test_whoever_has_the_link_makes_an_account_and_lands_on_home_as_a_member(people: People) -> None:
    secret, browser = invited(people), Client()
    assert "Join Lab" in browser.get(page(secret)).content.decode()
    answer = browser.post(page(secret), DORA, follow=True)
    assert answer.redirect_chain == [("/", 302)]
    assert answer.context["user"].username == "dora"
    assert answer.context["nav"]["tenant"] == people.lab
    assert role_of("dora") == "member"
    told = list(LoggedEvent.objects.order_by("id").values_list("kind", flat=True))[-5:]
    assert told == ["PersonInvited", "UserCreated", "MemberAdded", "InvitationAccepted", "SignedIn"]
    assert LoggedEvent.objects.last().payload["method"] == "invitation"
    assert Client().post(reverse("accounts:sign_in"), DORA).status_code == 302


def test_a_link_works_once(people: People) -> None:
    secret = invited(people)
    Client().post(page(secret), DORA)
    again = Client().post(page(secret), {**DORA, "username": "eve"})
    assert (again.status_code, "no longer valid" in again.content.decode()) == (404, True)
    assert not User.objects.filter(username="eve").exists()


def test_somebody_with_an_account_accepts_with_it(people: People, as_: As) -> None:
    secret, charlie = invited(people), as_(people.charlie)
    assert "Accept as Charlie" in charlie.get(page(secret)).content.decode()
    assert charlie.post(reverse("invitations:accept", args=[secret])).headers["Location"] == "/"
    assert role_of("charlie") == "member"
    assert charlie.get("/").context["nav"]["tenant"] == people.lab


def test_who_is_a_member_already_leaves_the_invitation_open(people: People) -> None:
    secret = invited(people)
    with pytest.raises(Refused, match="member of Lab already"):
        services.accept(secret, people.bob, now=clock.now())
    assert role_of("bob") == "viewer"
    assert selectors.by_secret(secret, now=clock.now())


@pytest.mark.parametrize(
    ("what", "field", "sentence"),
    [
        ({"username": "alice"}, "username", "already exists"),
        ({"username": "no good"}, "username", "valid username"),
        ({"password": "short"}, "password", "too short"),
        ({"password": ""}, "password", "required"),
        ({"password": "password123"}, "password", "too common"),
    ],
)
def test_what_is_wrong_is_said_in_the_field(people: People, what: dict[str, str], field: str, sentence: str) -> None:
    secret = invited(people)
    answer = Client().post(page(secret), DORA | what)
    assert sentence in str(answer.context["form"].errors[field])
    assert selectors.by_secret(secret, now=clock.now())


def _expire(people: People) -> None:
    Invitation.objects.update(expires_at=clock.now())


def _revoke(people: People) -> None:
    services.revoke(people.lab, Invitation.objects.get().pk, by=people.alice, now=clock.now())


def _resend(people: People) -> None:
    services.resend(people.lab, Invitation.objects.get().pk, by=people.alice, now=clock.now())


def _demote(people: People) -> None:
    tenancy_services.add_member(people.lab, people.charlie, "admin", actor=actor_of(people.ada), now=clock.now())
    tenancy_services.change_role(people.lab, people.alice.pk, "member", actor=actor_of(people.ada), now=clock.now())


def _dismiss(people: People) -> None:
    User.objects.filter(pk=people.alice.pk).update(is_active=False)


def _close(people: People) -> None:
    tenancy_services.change(people.lab, {"is_active": False}, actor=actor_of(people.ada), now=clock.now())


@pytest.mark.parametrize("happens", [_expire, _revoke, _resend, _demote, _dismiss, _close])
def test_a_link_ends(people: People, happens: Callable[[People], None]) -> None:
    secret = invited(people)
    happens(people)
    for ask in (Client().get, Client().post):
        assert ask(page(secret)).status_code == 404
    with pytest.raises(NotFound):
        services.accept(secret, people.charlie, now=clock.now())


def test_sent_again_it_lives_for_another_week(people: People) -> None:
    invited(people)
    _expire(people)
    later = clock.now() + timedelta(days=30)
    invitation, secret = services.resend(people.lab, Invitation.objects.get().pk, by=people.alice, now=later)
    assert selectors.by_secret(secret, now=later + timedelta(days=6)) == invitation


def test_only_platform_admins_give_platform_roles(people: People) -> None:
    with pytest.raises(Forbidden):
        invited(people, platform_role="operator")
    secret = invited(people, platform_role="operator", by=people.ada)
    Client().post(page(secret), DORA)
    assert User.objects.get(username="dora").platform_role == "operator"


def test_an_invitation_takes_no_platform_role_away(people: People) -> None:
    services.accept(invited(people, platform_role="editor", by=people.ada), people.ada, now=clock.now())
    assert User.objects.get(username="ada").platform_role == "admin"


def test_a_platform_role_needs_an_inviter_who_may_still_give_it(people: People) -> None:
    secret = invited(people, platform_role="admin", by=people.ada)
    User.objects.filter(pk=people.ada.pk).update(platform_role="")
    with pytest.raises(NotFound):
        services.accept(secret, people.charlie, now=clock.now())


def test_the_page_says_nothing_of_whether_an_address_is_known(people: People, as_: As) -> None:
    User.objects.filter(pk=people.charlie.pk).update(email="charlie@example.org")
    alice, address = as_(people.alice), reverse("invitations:list", args=["lab"])
    answers = [
        alice.post(address, {"email": f"{name}@example.org", "role": "member"}).content.decode()
        for name in ("charlie", "nobody")
    ]
    without = [answer.split("<h1")[1].split('<div class="code')[0] for answer in answers]
    assert without[0].replace("charlie@", "nobody@") == without[1]


@pytest.mark.parametrize(
    ("mailed", "sentence"), [(True, "sending the link to dora@example.org"), (False, "no mail server")]
)
def test_the_link_is_mailed_soon_where_there_is_a_server_and_shown_always(
    people: People, as_: As, settings, mailed: bool, sentence: str
) -> None:
    settings.MAIL_IS_SET_UP = mailed
    form = {"email": "dora@example.org", "role": "viewer"}
    shown = as_(people.alice).post(reverse("invitations:list", args=["lab"]), form)
    assert sentence in shown.content.decode()
    link = shown.context["link"]
    assert link in shown.content.decode()
    assert mail.outbox == [], "the page waits for no mail server"
    assert [letters.send_due(now=clock.now()) for _again in range(2)] == [int(mailed), 0]
    assert [(message.to, link in message.body) for message in mail.outbox] == (
        [(["dora@example.org"], True)] if mailed else []
    )


def test_a_new_link_is_mailed_in_the_place_of_the_one_before(people: People, as_: As, settings) -> None:
    settings.MAIL_IS_SET_UP = True
    alice, asked = as_(people.alice), reverse("invitations:list", args=["lab"])
    first = alice.post(asked, {"email": "dora@example.org", "role": "viewer"}).context["link"]
    again = reverse("invitations:resend", args=["lab", Invitation.objects.get().pk])
    second = alice.post(again).context["link"]
    letters.send_due(now=clock.now())
    (message,) = mail.outbox
    assert (first in message.body, second in message.body) == (False, True)


def test_a_letter_that_no_server_takes_is_told_to_who_invited(people: People, as_: As, settings) -> None:
    settings.MAIL_IS_SET_UP = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    alice, asked = as_(people.alice), reverse("invitations:list", args=["lab"])
    shown = alice.post(asked, {"email": "dora@example.org", "role": "viewer"})
    assert asked in shown.content.decode(), "it says where to look"
    assert letters.send_due(now=clock.now()) == 0
    assert "Not mailed yet. Retrying:" in alice.get(asked).content.decode()
    (listed,) = alice.get(reverse("api:v1:invitations", args=["lab"])).json()
    assert "refused" in listed["mail_error"]


def test_so_many_wait_and_no_more(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_WAITING", 1)
    invited(people)
    with pytest.raises(Refused, match="Revoke some"):
        invited(people)


def test_the_list_shows_those_that_wait(people: People, as_: As) -> None:
    invited(people, email="dora@example.org")
    shown = as_(people.alice).get(reverse("invitations:list", args=["lab"])).content.decode()
    assert "dora@example.org" in shown
    _expire(people)
    assert "expired" in as_(people.alice).get(reverse("invitations:list", args=["lab"])).content.decode()
    assert list(tenancy.members(people.lab).values_list("user__username", flat=True)) == ["alice", "bob"]
