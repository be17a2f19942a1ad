"""Invitations: rights of the inviter, and validity of the link."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

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

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
DORA = {"username": "dora", "display_name": "Dora", "password": "a-long-walk-home"}


def invite(people: People, **more: object) -> str:
    by = more.pop("by", people.alice)
    return services.invite(people.lab, role="member", by=by, now=clock.now(), **more)[1]


def page(secret: str) -> str:
    return reverse("invitations:sign_up", args=[secret])


def role_of(name: str, tenant: str = "lab") -> str | None:
    return Membership.objects.filter(user__username=name, tenant__slug=tenant).values_list("role", flat=True).first()


def test_link_creates_an_account_and_a_membership(people: People) -> None:
    secret, browser = invite(people), Client()
    assert "Join Lab" in browser.get(page(secret)).content.decode()
    answer = browser.post(page(secret), DORA, follow=True)
    assert answer.redirect_chain == [("/", 302)]
    assert answer.context["user"].username == "dora"
    assert answer.context["nav"]["tenant"] == people.lab
    assert role_of("dora") == "member"
    kinds = list(LoggedEvent.objects.order_by("id").values_list("kind", flat=True))[-5:]
    assert kinds == ["PersonInvited", "UserCreated", "MemberAdded", "InvitationAccepted", "SignedIn"]
    assert LoggedEvent.objects.last().payload["method"] == "invitation"
    assert Client().post(reverse("accounts:sign_in"), DORA).status_code == 302


def test_link_works_once(people: People) -> None:
    secret = invite(people)
    Client().post(page(secret), DORA)
    again = Client().post(page(secret), {**DORA, "username": "eve"})
    assert (again.status_code, "no longer valid" in again.content.decode()) == (404, True)
    assert not User.objects.filter(username="eve").exists()


def test_existing_user_accepts_an_invitation(people: People, as_: As) -> None:
    secret, charlie = invite(people), as_(people.charlie)
    assert "Accept as Charlie" in charlie.get(page(secret)).content.decode()
    assert charlie.post(reverse("invitations:accept", args=[secret])).headers["Location"] == "/"
    assert role_of("charlie") == "member"
    assert charlie.get("/").context["nav"]["tenant"] == people.lab


def test_member_cannot_use_up_an_invitation(people: People) -> None:
    secret = invite(people)
    with pytest.raises(Refused, match="member of Lab already"):
        services.accept(secret, people.bob, now=clock.now())
    assert role_of("bob") == "viewer"
    assert selectors.by_secret(secret, now=clock.now())


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"username": "alice"}, "username", "already exists"),
        ({"username": "no good"}, "username", "valid username"),
        ({"password": "short"}, "password", "too short"),
        ({"password": ""}, "password", "required"),
        ({"password": "password123"}, "password", "too common"),
    ],
)
def test_errors_are_at_their_field(people: People, changes: dict[str, str], field: str, sentence: str) -> None:
    secret = invite(people)
    answer = Client().post(page(secret), DORA | changes)
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


@pytest.mark.parametrize("invalidate", [_expire, _revoke, _resend, _demote, _dismiss, _close])
def test_invalid_links_return_404(people: People, invalidate: Callable[[People], None]) -> None:
    secret = invite(people)
    invalidate(people)
    for request in (Client().get, Client().post):
        assert request(page(secret)).status_code == 404
    with pytest.raises(NotFound):
        services.accept(secret, people.charlie, now=clock.now())


def test_resent_invitation_is_valid_for_a_week(people: People) -> None:
    invite(people)
    _expire(people)
    later = clock.now() + timedelta(days=30)
    invitation, secret = services.resend(people.lab, Invitation.objects.get().pk, by=people.alice, now=later)
    assert selectors.by_secret(secret, now=later + timedelta(days=6)) == invitation


def test_only_platform_admins_grant_platform_roles(people: People) -> None:
    with pytest.raises(Forbidden):
        invite(people, platform_role="operator")
    secret = invite(people, platform_role="operator", by=people.ada)
    Client().post(page(secret), DORA)
    assert User.objects.get(username="dora").platform_role == "operator"


def test_invitation_does_not_lower_a_platform_role(people: People) -> None:
    services.accept(invite(people, platform_role="editor", by=people.ada), people.ada, now=clock.now())
    assert User.objects.get(username="ada").platform_role == "admin"


def test_platform_role_ends_with_the_rights_of_the_inviter(people: People) -> None:
    secret = invite(people, platform_role="admin", by=people.ada)
    User.objects.filter(pk=people.ada.pk).update(platform_role="")
    with pytest.raises(NotFound):
        services.accept(secret, people.charlie, now=clock.now())


def test_page_does_not_reveal_known_addresses(people: People, as_: As) -> None:
    User.objects.filter(pk=people.charlie.pk).update(email="charlie@example.org")
    alice, address = as_(people.alice), reverse("invitations:list", args=["lab"])
    answers = [
        alice.post(address, {"email": f"{name}@example.org", "role": "member"}).content.decode()
        for name in ("charlie", "nobody")
    ]
    contents = [answer.split("<h1")[1].split('<div class="code')[0] for answer in answers]
    assert contents[0].replace("charlie@", "nobody@") == contents[1]


@pytest.mark.parametrize(
    ("has_mail", "sentence"), [(True, "sending the link to dora@example.org"), (False, "no mail server")]
)
def test_link_is_shown_and_mailed_if_possible(people: People, as_: As, settings, has_mail: bool, sentence: str) -> None:
    settings.MAIL_IS_SET_UP = has_mail
    form = {"email": "dora@example.org", "role": "viewer"}
    answer = as_(people.alice).post(reverse("invitations:list", args=["lab"]), form)
    assert sentence in answer.content.decode()
    link = answer.context["link"]
    assert link in answer.content.decode()
    assert mail.outbox == [], "the page does not wait for the mail server"
    assert [letters.send_due(now=clock.now()) for _again in range(2)] == [int(has_mail), 0]
    assert [(message.to, link in message.body) for message in mail.outbox] == (
        [(["dora@example.org"], True)] if has_mail else []
    )


def test_resent_link_replaces_the_unsent_one(people: People, as_: As, settings) -> None:
    settings.MAIL_IS_SET_UP = True
    alice, list_url = as_(people.alice), reverse("invitations:list", args=["lab"])
    first = alice.post(list_url, {"email": "dora@example.org", "role": "viewer"}).context["link"]
    again = reverse("invitations:resend", args=["lab", Invitation.objects.get().pk])
    second = alice.post(again).context["link"]
    letters.send_due(now=clock.now())
    (message,) = mail.outbox
    assert (first in message.body, second in message.body) == (False, True)


def test_mail_errors_are_shown_to_the_inviter(people: People, as_: As, settings) -> None:
    settings.MAIL_IS_SET_UP = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    alice, list_url = as_(people.alice), reverse("invitations:list", args=["lab"])
    answer = alice.post(list_url, {"email": "dora@example.org", "role": "viewer"})
    assert list_url in answer.content.decode(), "the answer links to the list of invitations"
    assert letters.send_due(now=clock.now()) == 0
    assert "Not mailed yet. Retrying:" in alice.get(list_url).content.decode()
    (listed,) = alice.get(reverse("api:v1:invitations", args=["lab"])).json()
    assert "refused" in listed["mail_error"]


def test_number_of_open_invitations_is_limited(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_WAITING", 1)
    invite(people)
    with pytest.raises(Refused, match="Revoke some"):
        invite(people)


def test_list_shows_open_invitations(people: People, as_: As) -> None:
    invite(people, email="dora@example.org")
    html = as_(people.alice).get(reverse("invitations:list", args=["lab"])).content.decode()
    assert "dora@example.org" in html
    _expire(people)
    assert "expired" in as_(people.alice).get(reverse("invitations:list", args=["lab"])).content.decode()
    assert list(tenancy.members(people.lab).values_list("user__username", flat=True)) == ["alice", "bob"]
