"""Signing in with an OpenID provider: a real one, in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.e2e.conftest import free_port
from tests.support import openid_provider as there

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.identities import claims, services
from hekla.apps.identities.claims import Claims, ProviderFailed
from hekla.apps.identities.models import Identity
from hekla.apps.invitations import services as invitations
from hekla.apps.signin import services as factors
from hekla.apps.signin.models import SecondFactor
from hekla.apps.tenancy.models import Membership
from hekla.domain.errors import NotFound, Refused
from hekla.lib import clock
from hekla.project.config import OpenIDProvider

BACK = "http://testserver/accounts/from/acme/back/"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("provider")
    command = [sys.executable, "-P", str(Path(there.__file__)), str(port), str(folder), BACK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{port}/o"
        process.terminate()


@pytest.fixture
def acme(issuer: str, settings, monkeypatch: pytest.MonkeyPatch) -> OpenIDProvider:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings.PUBLIC_URL = "http://testserver"
    found = OpenIDProvider(
        name="acme", label="Acme", issuer=issuer, client_id=there.CLIENT_ID, client_secret=there.CLIENT_SECRET
    )
    settings.OIDC_PROVIDERS = (found,)
    return found


@pytest.fixture
def lets_in(acme: OpenIDProvider, settings) -> OpenIDProvider:
    """As `acme`, and whoever has an address of example.org may come."""
    found = acme.model_copy(update={"domains": ("Example.org",), "tenant": "lab"})
    settings.OIDC_PROVIDERS = (found,)
    return found


class Trip:
    """One browser that goes to the provider, signs in there, and comes back with what the provider sent along."""

    def __init__(self, client: Client, name: str, **query: str) -> None:
        self.asked = client.get(reverse("accounts:start_oidc", args=["acme"]), query).headers["Location"]
        with httpx2.Client(follow_redirects=False, trust_env=False) as there_:
            self.back = self._through(there_, self.asked, name)

    def _through(self, browser: httpx2.Client, address: str, name: str) -> str:
        while not address.startswith(BACK):
            answer = browser.get(address)
            if answer.is_success:
                token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', answer.text)
                assert token, answer.text
                sent = {"username": name, "password": there.PASSWORD, "csrfmiddlewaretoken": token[1]}
                answer = browser.post(str(answer.url), data=sent, headers={"Referer": str(answer.url)})
            assert answer.has_redirect_location, answer.text
            address = str(answer.url.join(answer.headers["Location"]))
        return address


def come(client: Client, name: str, **query: str):
    return client.get(Trip(client, name, **query).back)


def who(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


def test_who_was_invited_joins_and_comes_again(people: People, acme: OpenIDProvider) -> None:
    _, secret = invitations.invite(people.lab, role="member", by=people.alice, now=clock.now())
    page = Client().get(reverse("invitations:sign_up", args=[secret])).content.decode()
    assert "Join with Acme" in page
    client = Client()
    assert come(client, "dora", invitation=secret).headers["Location"] == "/"
    assert who(client) == "dora"
    dora = User.objects.get(username="dora")
    assert (dora.display_name, dora.has_usable_password()) == ("Dora", False)
    assert Membership.objects.get(user=dora).role == "member"
    again = Client()
    assert come(again, "dora", next="/queues/").headers["Location"] == "/queues/"
    assert who(again) == "dora"
    assert Identity.objects.count() == 1
    assert LoggedEvent.objects.last().payload["method"] == "acme"


def test_the_way_there_carries_state_nonce_and_a_challenge(people: People, acme: OpenIDProvider) -> None:
    asked = parse_qs(urlsplit(Trip(Client(), "dora").asked).query)
    assert asked["redirect_uri"] == [BACK]
    assert asked["code_challenge_method"] == ["S256"]
    assert all(len(asked[name][0]) >= 20 for name in ("state", "nonce", "code_challenge"))


def test_nobody_comes_uninvited(people: People, acme: OpenIDProvider) -> None:
    client = Client()
    answer = come(client, "dora")
    assert (answer.status_code, "You have no tenant yet" in answer.content.decode()) == (403, True)
    assert who(client) is None
    assert not User.objects.filter(username="dora").exists()


@pytest.mark.parametrize(("name", "comes"), [("dora", True), ("emil", False), ("mallory", False)])
def test_a_verified_address_of_a_domain_may_do(people: People, lets_in: OpenIDProvider, name: str, comes: bool) -> None:
    client = Client()
    come(client, name)
    assert (who(client) == name) == comes
    assert Membership.objects.filter(user__username=name, tenant=people.lab, role="member").exists() == comes


def test_the_same_address_or_name_opens_no_account(people: People, lets_in: OpenIDProvider) -> None:
    User.objects.filter(pk=people.bob.pk).update(username="dora", email="dora@example.org")
    client = Client()
    come(client, "dora")
    assert who(client) == "dora2"


def test_an_answer_is_good_for_one_browser_and_once(people: People, lets_in: OpenIDProvider) -> None:
    mine, other = Client(), Client()
    trip = Trip(mine, "dora")
    assert other.get(trip.back).status_code == 403
    assert mine.get(trip.back).status_code == 302
    assert mine.get(trip.back).status_code == 403
    assert (who(mine), who(other)) == ("dora", None)


@pytest.mark.parametrize("query", ["", "?error=access_denied", "?code=x&state=y", "?state=y"])
def test_what_does_not_hold_is_said(people: People, acme: OpenIDProvider, query: str) -> None:
    answer = Client().get(reverse("accounts:oidc_back", args=["acme"]) + query)
    assert (answer.status_code, "Sign-in with Acme failed" in answer.content.decode()) == (403, True)


def test_a_provider_that_is_away_is_said(people: People, acme: OpenIDProvider, settings) -> None:
    settings.OIDC_PROVIDERS = (acme.model_copy(update={"issuer": f"http://127.0.0.1:{free_port()}"}),)
    answer = Client().get(reverse("accounts:start_oidc", args=["acme"]))
    assert (answer.status_code, "failed" in answer.content.decode()) == (403, True)


def test_another_issuer_is_not_believed(acme: OpenIDProvider) -> None:
    with pytest.raises(ProviderFailed, match="another issuer"):
        claims.read(acme, {"iss": "https://evil.example", "sub": "1"})


def test_a_second_factor_here_is_asked_for_too(people: People, lets_in: OpenIDProvider) -> None:
    come(Client(), "dora")
    dora = User.objects.get(username="dora")
    factors.begin(dora, now=clock.now())
    SecondFactor.objects.update(confirmed_at=clock.now())
    client = Client()
    assert come(client, "dora").headers["Location"] == reverse("accounts:second_step")
    assert who(client) is None


def test_a_closed_account_stays_closed(people: People, lets_in: OpenIDProvider) -> None:
    come(Client(), "dora")
    User.objects.filter(username="dora").update(is_active=False)
    client = Client()
    assert come(client, "dora").status_code == 403
    assert who(client) is None


def test_who_has_an_account_connects_it_and_takes_it_away(people: People, acme: OpenIDProvider) -> None:
    people.alice.set_password("a-long-walk-home")
    people.alice.save()
    client = Client()
    client.post(reverse("accounts:sign_in"), {"username": "alice", "password": "a-long-walk-home"})
    assert "Go to Acme" in client.post(reverse("accounts:connect_identity", args=["acme"])).content.decode()
    assert come(client, "emil").headers["Location"] == reverse("accounts:identities")
    again = Client()
    come(again, "emil")
    assert who(again) == "alice"
    identity = Identity.objects.get()
    client.post(reverse("accounts:disconnect_identity", args=[identity.pk]))
    assert come(Client(), "emil").status_code == 403


def test_without_a_word_of_hers_nothing_is_connected(people: People, acme: OpenIDProvider, as_) -> None:
    client = as_(people.alice)
    assert come(client, "emil").status_code == 403
    assert not Identity.objects.exists()


CLAIMS = Claims("https://issuer", "1", "d o/r\0a", "Dora", "example.org")


def test_an_identity_is_one_persons(people: People, lets_in: OpenIDProvider) -> None:
    services.connect(lets_in, CLAIMS, people.alice, now=clock.now())
    with pytest.raises(Refused, match="already linked"):
        services.connect(lets_in, CLAIMS, people.bob, now=clock.now())
    with pytest.raises(NotFound):
        services.disconnect(people.bob, Identity.objects.get().pk, now=clock.now())
    with pytest.raises(Refused, match="only sign-in method"):
        services.disconnect(people.alice, Identity.objects.get().pk, now=clock.now())


@pytest.mark.parametrize(("wish", "got"), [("d o/r\0a", "dora"), ("", "person"), ("ALICE", "ALICE2"), ("陈", "陈")])
def test_a_name_that_can_be_had(people: People, lets_in: OpenIDProvider, wish: str, got: str) -> None:
    claims = replace(CLAIMS, username=wish)
    assert services.arrive(lets_in, claims, invitation="", now=clock.now()).username == got
