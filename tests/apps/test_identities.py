"""Sign-in with an OpenID provider that runs in a process of its own."""

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
from tests.apps.shared_people import db, people, shared_people
from tests.e2e.conftest import free_port
from tests.support import openid_provider as provider

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

__all__ = ["db", "people", "shared_people"]

BACK = "http://testserver/accounts/from/acme/back/"
CERTIFICATES = httpx2.create_ssl_context(verify=False)  # the provider of these tests has none


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("provider")
    command = [sys.executable, "-P", str(Path(provider.__file__)), str(port), str(folder), BACK]
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
        name="acme", label="Acme", issuer=issuer, client_id=provider.CLIENT_ID, client_secret=provider.CLIENT_SECRET
    )
    settings.OIDC_PROVIDERS = (found,)
    return found


@pytest.fixture
def acme_with_domain(acme: OpenIDProvider, settings) -> OpenIDProvider:
    """Like `acme`, and verified addresses of example.org may sign in."""
    found = acme.model_copy(update={"domains": ("Example.org",), "tenant": "lab"})
    settings.OIDC_PROVIDERS = (found,)
    return found


class ProviderSignIn:
    """One browser that goes to the provider, signs in there, and returns with the provider's answer."""

    def __init__(self, client: Client, name: str, **query: str) -> None:
        self.request_url = client.get(reverse("accounts:start_oidc", args=["acme"]), query).headers["Location"]
        with httpx2.Client(follow_redirects=False, trust_env=False, verify=CERTIFICATES) as browser:
            self.callback_url = self._through(browser, self.request_url, name)

    def _through(self, browser: httpx2.Client, address: str, name: str) -> str:
        while not address.startswith(BACK):
            answer = browser.get(address)
            if answer.is_success:
                token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', answer.text)
                assert token, answer.text
                sent = {"username": name, "password": provider.PASSWORD, "csrfmiddlewaretoken": token[1]}
                answer = browser.post(str(answer.url), data=sent, headers={"Referer": str(answer.url)})
            assert answer.has_redirect_location, answer.text
            address = str(answer.url.join(answer.headers["Location"]))
        return address


def sign_in_with_acme(client: Client, name: str, **query: str):
    return client.get(ProviderSignIn(client, name, **query).callback_url)


def signed_in_user(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


def test_invited_user_joins_and_signs_in_again(people: People, acme: OpenIDProvider) -> None:
    _, secret = invitations.invite(people.lab, role="member", by=people.alice, now=clock.now())
    page = Client().get(reverse("invitations:sign_up", args=[secret])).content.decode()
    assert "Join with Acme" in page
    client = Client()
    assert sign_in_with_acme(client, "dora", invitation=secret).headers["Location"] == "/"
    assert signed_in_user(client) == "dora"
    dora = User.objects.get(username="dora")
    assert (dora.display_name, dora.has_usable_password()) == ("Dora", False)
    assert Membership.objects.get(user=dora).role == "member"
    again = Client()
    assert sign_in_with_acme(again, "dora", next="/queues/").headers["Location"] == "/queues/"
    assert signed_in_user(again) == "dora"
    assert Identity.objects.count() == 1
    assert LoggedEvent.objects.last().payload["method"] == "acme"


def test_request_has_state_nonce_and_challenge(people: People, acme: OpenIDProvider) -> None:
    query = parse_qs(urlsplit(ProviderSignIn(Client(), "dora").request_url).query)
    assert query["redirect_uri"] == [BACK]
    assert query["code_challenge_method"] == ["S256"]
    assert all(len(query[name][0]) >= 20 for name in ("state", "nonce", "code_challenge"))


def test_user_without_invitation_is_refused(people: People, acme: OpenIDProvider) -> None:
    client = Client()
    answer = sign_in_with_acme(client, "dora")
    assert (answer.status_code, "You have no tenant yet" in answer.content.decode()) == (403, True)
    assert signed_in_user(client) is None
    assert not User.objects.filter(username="dora").exists()


@pytest.mark.parametrize(("name", "is_admitted"), [("dora", True), ("emil", False), ("mallory", False)])
def test_verified_address_of_an_allowed_domain_is_admitted(
    people: People, acme_with_domain: OpenIDProvider, name: str, is_admitted: bool
) -> None:
    client = Client()
    sign_in_with_acme(client, name)
    assert (signed_in_user(client) == name) == is_admitted
    assert Membership.objects.filter(user__username=name, tenant=people.lab, role="member").exists() == is_admitted


def test_same_address_or_name_does_not_take_over_an_account(people: People, acme_with_domain: OpenIDProvider) -> None:
    User.objects.filter(pk=people.bob.pk).update(username="dora", email="dora@example.org")
    client = Client()
    sign_in_with_acme(client, "dora")
    assert signed_in_user(client) == "dora2"


def test_callback_works_once_and_in_one_browser(people: People, acme_with_domain: OpenIDProvider) -> None:
    mine, other = Client(), Client()
    sign_in = ProviderSignIn(mine, "dora")
    assert other.get(sign_in.callback_url).status_code == 403
    assert mine.get(sign_in.callback_url).status_code == 302
    assert mine.get(sign_in.callback_url).status_code == 403
    assert (signed_in_user(mine), signed_in_user(other)) == ("dora", None)


@pytest.mark.parametrize("query", ["", "?error=access_denied", "?code=x&state=y", "?state=y"])
def test_invalid_callback_is_refused(people: People, acme: OpenIDProvider, query: str) -> None:
    answer = Client().get(reverse("accounts:oidc_back", args=["acme"]) + query)
    assert (answer.status_code, "Sign-in with Acme failed" in answer.content.decode()) == (403, True)


def test_unreachable_provider_is_reported(people: People, acme: OpenIDProvider, settings) -> None:
    settings.OIDC_PROVIDERS = (acme.model_copy(update={"issuer": f"http://127.0.0.1:{free_port()}"}),)
    answer = Client().get(reverse("accounts:start_oidc", args=["acme"]))
    assert (answer.status_code, "failed" in answer.content.decode()) == (403, True)


def test_claims_of_another_issuer_are_refused(acme: OpenIDProvider) -> None:
    with pytest.raises(ProviderFailed, match="another issuer"):
        claims.read(acme, {"iss": "https://evil.example", "sub": "1"})


def test_second_factor_is_required_too(people: People, acme_with_domain: OpenIDProvider) -> None:
    sign_in_with_acme(Client(), "dora")
    dora = User.objects.get(username="dora")
    factors.begin(dora, now=clock.now())
    SecondFactor.objects.update(confirmed_at=clock.now())
    client = Client()
    assert sign_in_with_acme(client, "dora").headers["Location"] == reverse("accounts:second_step")
    assert signed_in_user(client) is None


def test_inactive_user_is_refused(people: People, acme_with_domain: OpenIDProvider) -> None:
    sign_in_with_acme(Client(), "dora")
    User.objects.filter(username="dora").update(is_active=False)
    client = Client()
    assert sign_in_with_acme(client, "dora").status_code == 403
    assert signed_in_user(client) is None


def test_identity_is_connected_and_disconnected(people: People, acme: OpenIDProvider) -> None:
    people.alice.set_password("a-long-walk-home")
    people.alice.save()
    client = Client()
    client.post(reverse("accounts:sign_in"), {"username": "alice", "password": "a-long-walk-home"})
    assert "Go to Acme" in client.post(reverse("accounts:connect_identity", args=["acme"])).content.decode()
    assert sign_in_with_acme(client, "emil").headers["Location"] == reverse("accounts:identities")
    again = Client()
    sign_in_with_acme(again, "emil")
    assert signed_in_user(again) == "alice"
    identity = Identity.objects.get()
    client.post(reverse("accounts:disconnect_identity", args=[identity.pk]))
    assert sign_in_with_acme(Client(), "emil").status_code == 403


def test_identity_is_not_connected_without_consent(people: People, acme: OpenIDProvider, as_) -> None:
    client = as_(people.alice)
    assert sign_in_with_acme(client, "emil").status_code == 403
    assert not Identity.objects.exists()


CLAIMS = Claims("https://issuer", "1", "d o/r\0a", "Dora", "example.org")


def test_identity_belongs_to_one_user(people: People, acme_with_domain: OpenIDProvider) -> None:
    services.connect(acme_with_domain, CLAIMS, people.alice, now=clock.now())
    with pytest.raises(Refused, match="already linked"):
        services.connect(acme_with_domain, CLAIMS, people.bob, now=clock.now())
    with pytest.raises(NotFound):
        services.disconnect(people.bob, Identity.objects.get().pk, now=clock.now())
    with pytest.raises(Refused, match="only sign-in method"):
        services.disconnect(people.alice, Identity.objects.get().pk, now=clock.now())


@pytest.mark.parametrize(
    ("preferred", "expected"), [("d o/r\0a", "dora"), ("", "person"), ("ALICE", "ALICE2"), ("陈", "陈")]
)
def test_username_is_cleaned_and_made_unique(
    people: People, acme_with_domain: OpenIDProvider, preferred: str, expected: str
) -> None:
    claims = replace(CLAIMS, username=preferred)
    assert services.arrive(acme_with_domain, claims, invitation="", now=clock.now()).username == expected
