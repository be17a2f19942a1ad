"""Impersonation: a platform admin uses a user's account, with that user's rights, for a limited time, on record."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from tests.apps.access_world import MANIFEST, impersonate
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.audit import selectors as audit
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.impersonation import selectors, services
from hekla.apps.impersonation.models import ImpersonationSession
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Notification
from hekla.domain.errors import Forbidden, Invalid, NotFound, Refused
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
END = reverse("accounts:end_impersonation")
PASSWORD = "a-long-walk-home"


@pytest.fixture
def client(people: People) -> Client:
    """A browser in which Ada impersonates Alice."""
    return impersonate(people.alice, by=people.ada)


def submit(client: Client):
    return client.post(reverse("jobs:submit_yaml"), {"text": MANIFEST})


def logged_events() -> list[tuple[str, str, str]]:
    return list(LoggedEvent.objects.order_by("id").values_list("kind", "actor_name", "impersonator_name"))


def expire(impersonation: ImpersonationSession) -> None:
    ImpersonationSession.objects.filter(pk=impersonation.pk).update(until=clock.now())


def demote_admin(impersonation: ImpersonationSession) -> None:
    User.objects.filter(pk=impersonation.admin_id).update(platform_role="operator")


def promote_person(impersonation: ImpersonationSession) -> None:
    User.objects.filter(pk=impersonation.person_id).update(platform_role="admin")


def deactivate_person(impersonation: ImpersonationSession) -> None:
    User.objects.filter(pk=impersonation.person_id).update(is_active=False)


def test_impersonation_needs_password_and_reason(people: People, as_: As) -> None:
    accounts.change_user(people.ada, {}, password=PASSWORD, actor=accounts.actor_of(people.ada), now=clock.now())
    ada, page = as_(people.ada), reverse("accounts:impersonate", args=[people.alice.pk])
    assert page in ada.get(reverse("accounts:list")).content.decode()
    redirect = ada.get(page)
    assert redirect.headers["Location"].startswith(reverse("accounts:prove"))
    ada.post(redirect.headers["Location"], {"password": PASSWORD})
    ada.post(page, {"reason": " "})
    assert not ImpersonationSession.objects.exists()
    key, token = ada.session.session_key, ada.cookies[settings.CSRF_COOKIE_NAME].value
    home = ada.post(page, {"reason": "Her <job> is lost."}, follow=True)
    assert home.context["user"] == people.alice
    assert "You are acting as Alice. You are signed in as Ada." in home.content.decode()
    assert "Her &lt;job&gt; is lost." in home.content.decode()
    assert ada.session.session_key != key
    assert ada.cookies[settings.CSRF_COOKIE_NAME].value != token  # a form that Ada loaded cannot be sent as Alice
    assert "You are acting as" in ada.get("/nothing/").content.decode()


def test_events_name_both_people(people: People, client: Client) -> None:
    submit(client)
    assert Job.objects.get(name="sent").owner == people.alice
    assert ("JobSubmitted", "alice", "ada") in logged_events()
    client.post(END)
    assert [one for one in logged_events() if one[0].startswith("Impersonation")] == [
        ("ImpersonationStarted", "ada", ""),
        ("ImpersonationEnded", "ada", ""),
    ]
    page = client.get(reverse("audit"), {"kind": "JobSubmitted"}).content.decode()
    assert "ada as alice" in page
    for name in ("ada", "alice"):
        found = audit.acts(people.ada, audit.parse_query({"person": name, "kind": "JobSubmitted"}))
        assert [act.event.who for act in found] == ["ada as alice"]
    (read,) = client.get(reverse("api:v1:audit"), {"kind": "JobSubmitted"}).json()
    assert (read["person"], read["impersonated_by"]) == ("alice", "ada")


def test_admin_is_signed_in_again_after_the_end(people: People, client: Client) -> None:
    key = client.session.session_key
    assert client.post(END).headers["Location"] == reverse("accounts:list")
    assert client.get("/").context["user"] == people.ada
    assert client.session.session_key != key
    assert client.post(END).status_code == 404


def test_overdue_impersonation_is_ended(people: People, client: Client) -> None:
    impersonation = ImpersonationSession.objects.get()
    assert services.end_overdue(now=clock.now()) == 0
    assert services.end_overdue(now=impersonation.until + timedelta(minutes=5)) == 1
    assert LoggedEvent.objects.order_by("id").last().at == impersonation.until
    assert logged_events()[-1] == ("ImpersonationEnded", "ada", "")


def test_sign_out_ends_impersonation(client: Client) -> None:
    client.post(reverse("accounts:sign_out"))
    assert ImpersonationSession.objects.get().ended_at is not None
    assert client.get("/").status_code == 302


@pytest.mark.parametrize("end", [expire, promote_person, deactivate_person])
def test_request_after_the_end_is_refused(people: People, client: Client, end) -> None:
    end(ImpersonationSession.objects.get())
    htmx_answer = client.get("/", headers={"HX-Request": "true"})
    assert (htmx_answer.status_code, htmx_answer.headers["HX-Refresh"]) == (403, "true")
    answer = submit(client)
    assert answer.headers["Location"] == "/"
    assert not Job.objects.filter(name="sent").exists()
    home = client.get("/")
    assert home.context["user"] == people.ada
    assert "You stopped acting for this person" in home.content.decode()
    assert logged_events()[-1] == ("ImpersonationEnded", "ada", "")


def test_former_admin_no_longer_impersonates(people: People, client: Client) -> None:
    demote_admin(ImpersonationSession.objects.get())
    client.get("/")
    assert client.get("/").context["user"] == people.ada


@pytest.mark.parametrize(
    "path", ["accounts:profile", "accounts:second_factor", "accounts:login_sessions", "accounts:identities"]
)
def test_personal_pages_are_closed(client: Client, path: str) -> None:
    page = client.get(reverse(path))
    assert page.status_code == 403
    assert "This page is closed while you act for another person" in page.content.decode()
    assert "You are acting as Alice" in page.content.decode()


def test_login_session_belongs_to_the_admin(people: People, client: Client) -> None:
    client.get("/")
    assert not people.alice.login_sessions.exists()
    assert people.ada.login_sessions.exists()


def test_admins_and_inactive_users_cannot_be_impersonated(people: People) -> None:
    now = clock.now()
    other = accounts.create_user(
        username="root", password=None, platform_role="admin", actor=accounts.actor_of(people.ada), now=now
    )
    User.objects.filter(pk=people.bob.pk).update(is_active=False)
    for user in (people.ada, other, User.objects.get(pk=people.bob.pk)):
        with pytest.raises(Refused, match="cannot be impersonated"):
            services.begin(user, reason="x", by=people.ada, now=now)
    with pytest.raises(Invalid):
        services.begin(people.alice, reason=" ", by=people.ada, now=now)
    for role in ("operator", "manager", ""):
        people.charlie.platform_role = role
        with pytest.raises(Forbidden):
            services.begin(people.alice, reason="x", by=people.charlie, now=now)


def test_impersonation_of_another_admin_is_not_found(people: People) -> None:
    impersonation = services.begin(people.alice, reason="x", by=people.ada, now=clock.now())
    with pytest.raises(NotFound):
        selectors.present(people.charlie, impersonation.pk, now=clock.now())
    assert selectors.present(people.ada, impersonation.pk, now=clock.now()) == people.alice
    with pytest.raises(NotFound):
        selectors.present(people.ada, impersonation.pk, now=impersonation.began_at + timedelta(hours=1))


def test_person_is_notified(people: People, as_: As) -> None:
    notifications.follow(now=clock.now())
    services.begin(people.alice, reason="Her job is lost.", by=people.ada, now=clock.now())
    assert notifications.follow(now=clock.now()) == 1
    assert notifications.follow(now=clock.now()) == 0
    assert Notification.objects.get().user == people.alice
    page = as_(people.alice).get(reverse("notifications:list")).content.decode()
    assert "ada is acting as you for up to one hour. Reason: Her job is lost." in page
    (read,) = as_(people.alice).get(reverse("api:v1:notifications")).json()["results"]
    assert (read["moment"], read["job_uid"]) == ("acted_for", None)
